//===- FrozenRows.cpp - Rows to the host and results back -----------------===//

#include "cuda/consolidation/FrozenRows.h"

#include "consolidation/RowOrder.h"
#include "cuda/device/pool.cuh"
#include "engine/StatusBits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sinkstate::runtime::cuda {

using consolidation::ReadStage;
using consolidation::SvdStatus;

FrozenRows::FrozenRows(const ConsolidatedStates &states,
                       const ss_engine_options &options,
                       const KernelCompiler &compiler)
    : context(states.context), manifest(states.manifest),
      plan(states.manifest, states.layout, options.slots),
      readableRows(states.readableRows),
      kernels(context, compiler), memory(context, size_t(plan.deviceBytes)),
      host(context, size_t(plan.hostBytes)), downloads(context),
      uploads(context) {
  downloads.zero(memory.address(), memory.bytes());
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    tables.push_back(tableOf(i, states, options));
    const LayerPlaces &places =
        states.layout.layers[size_t(plan.layers[i].layer)];
    dropBelow.push_back(places.sizes.dropBelow);
    counts.push_back(states.begin + CUdeviceptr(places.count));
  }
  downloads.copyIn(addressOf(plan.tables), tables.data(),
                   tables.size() * sizeof(ss::FrozenLayer));
  downloads.wait();
  frozen = {onDevice<ss::FrozenLayer>(plan.tables),
            reinterpret_cast<const int64_t *>(
                states.begin + CUdeviceptr(states.layout.position)),
            layers(), plan.slots};
  for (int32_t i = 0; i < ss::kMailboxes; ++i) {
    mailboxes.box[i] = mailbox(plan.boxes[i]);
    boxes[i].results.reserve(size_t(plan.mostStates));
  }
}

ss::FrozenLayer FrozenRows::tableOf(size_t index,
                                    const ConsolidatedStates &states,
                                    const ss_engine_options &options) const {
  const FrozenLayerPlan &own = plan.layers[index];
  const LayerManifest &layer = states.manifest.layers[size_t(own.layer)];
  const LayerPlaces &places = states.layout.layers[size_t(own.layer)];
  auto at = [&]<typename T>(T *, int64_t offset) {
    return reinterpret_cast<T *>(states.begin + CUdeviceptr(offset));
  };
  ss::FrozenLayer table = {};
  table.rows = at(table.rows, places.rows);
  table.weights = at(table.weights, places.weights);
  table.row_base = at(table.row_base, places.rowBase);
  table.rank = at(table.rank, places.rank);
  table.status = at(table.status, places.status);
  table.work = at(table.work, places.due);
  table.work_count = at(table.work_count, places.dueCount);
  table.epoch = onDevice<uint64_t>(own.epoch);
  table.since = onDevice<int32_t>(own.since);
  table.notes = host.onDevice<uint64_t>(own.notes);
  table.changes = host.onDevice<uint64_t>(own.changes);
  table.changed = onDevice<uint64_t>(own.changed);
  table.total_rows = places.sizes.states * places.capacity;
  // In a pool a state without a block has row 0 for its base.
  table.first_row = states.layout.pooled ? ss::kScrapRows : 0;
  table.heads = layer.heads;
  table.active = layer.active;
  table.row_bytes = int32_t(places.sizes.rowBytes());
  table.every = options.consolidate_every;
  table.most = own.most;
  table.crowded = own.most - layer.buffer - layer.draft;
  return table;
}

ss::Mailbox FrozenRows::mailbox(const MailboxPlan &box) const {
  return {onDevice<uint64_t>(box.ready),    onDevice<uint64_t>(box.count),
          onDevice<ss::Result>(box.results), onDevice<uint8_t>(box.data),
          onDevice<uint64_t>(box.answered),
          host.onDevice<uint64_t>(box.hostAnswers),
          host.onDevice<int64_t>(box.hostAnsweredAt)};
}

void FrozenRows::noteCompactions(CUstream stream) const {
  if (layers() > 0)
    kernels.noteCompactions(frozen, stream);
}

void FrozenRows::noteCompactions(int32_t layer, CUstream stream) const {
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    if (plan.layers[i].layer != layer)
      continue;
    ss::Frozen one = frozen;
    one.layers += i;
    one.layer_count = 1;
    kernels.noteCompactions(one, stream);
  }
}

void FrozenRows::noteSlot(int32_t slot, CUstream stream) const {
  if (layers() > 0)
    kernels.noteSlot(frozen, slot, stream);
}

void FrozenRows::swapIn(CUstream stream) const {
  if (layers() > 0)
    kernels.swapIn(frozen, mailboxes, stream);
}

uint64_t FrozenRows::note(int32_t layer, int32_t slot) const {
  return ss::observe(
      host.at<uint64_t>(plan.layers[size_t(layer)].notes) + slot);
}

uint64_t FrozenRows::changes(int32_t layer) const {
  return ss::observe(host.at<uint64_t>(plan.layers[size_t(layer)].changes));
}

//===----------------------------------------------------------------------===//
// Download
//===----------------------------------------------------------------------===//

std::unique_ptr<consolidation::HostJob>
FrozenRows::prepare(consolidation::Job given) const {
  auto job = std::make_unique<HostJob>();
  const LayerManifest &layer = manifestOf(given.layer);
  job->positions.assign(given.targets.size(), -1);
  for (size_t target = 0; target < given.targets.size(); ++target)
    for (int32_t head = 0; head < layer.heads; ++head) {
      StateCopy copy;
      copy.target = int32_t(target);
      copy.state =
          int64_t(given.targets[target].slot) * layer.heads + head;
      copy.dk = layer.dk;
      copy.dv = layer.dv;
      copy.truncation.eps = dropBelow[size_t(given.layer)];
      job->states.push_back(std::move(copy));
    }
  job->job = std::move(given);
  return job;
}

/// The layer as it may be read now, under the lock.
ss::FrozenLayer FrozenRows::readableTable(int32_t layer) const {
  ss::FrozenLayer table = tables[size_t(layer)];
  if (readableRows)
    table.total_rows = readableRows(size_t(plan.layers[size_t(layer)].layer));
  return table;
}

/// Fills hostStates and hostData.
void FrozenRows::readStates(const HostJob &job) {
  const Driver &driver = context->driver();
  const std::vector<consolidation::Target> &targets = job.job.targets;
  const size_t states = job.states.size();
  const CUstream stream = downloads.get();
  for (size_t i = 0; i < targets.size(); ++i)
    host.at<int32_t>(plan.hostSlots)[i] = targets[i].slot;
  SS_CUDA(driver, cuMemcpyHtoDAsync(addressOf(plan.gatherSlots),
                                    host.at<int32_t>(plan.hostSlots),
                                    targets.size() * sizeof(int32_t), stream));
  downloads.zero(addressOf(plan.gatherUsed), sizeof(uint64_t));
  const std::lock_guard lock(reading);
  kernels.gather({readableTable(job.job.layer), frozen.position,
                  onDevice<int32_t>(plan.gatherSlots),
                  onDevice<ss::GatheredState>(plan.gatherStates),
                  onDevice<uint8_t>(plan.gatherData),
                  onDevice<uint64_t>(plan.gatherUsed), plan.room},
                 int32_t(states), stream);
  SS_CUDA(driver, cuMemcpyDtoHAsync(host.at<uint64_t>(plan.hostUsed),
                                    addressOf(plan.gatherUsed),
                                    sizeof(uint64_t), stream));
  SS_CUDA(driver,
          cuMemcpyDtoHAsync(host.at<ss::GatheredState>(plan.hostStates),
                            addressOf(plan.gatherStates),
                            states * sizeof(ss::GatheredState), stream));
  downloads.wait();
  // Only what is there travels: ranks are far below their bound.
  downloads.copyOut(host.at<uint8_t>(plan.hostData),
                    addressOf(plan.gatherData),
                    size_t(*host.at<uint64_t>(plan.hostUsed)));
}

/// What was read of one state, in f32, the active rows first.
void FrozenRows::takeState(const HostJob &job, size_t index,
                           StateCopy &copy) const {
  const ss::GatheredState &read =
      host.at<ss::GatheredState>(plan.hostStates)[index];
  copy.count = read.rank;
  copy.active = std::min(manifestOf(job.job.layer).active, read.rank);
  if (read.rank == 0)
    return;
  const uint64_t epoch = job.job.targets[size_t(copy.target)].epoch;
  if (read.before != epoch || read.after != epoch) {
    *copy.stage = ReadStage::cancelled;
    return;
  }
  const int64_t width = copy.dk + copy.dv;
  copy.rows.resize(size_t(copy.count * width));
  copy.weights.resize(size_t(copy.count));
  const uint8_t *from = host.at<uint8_t>(plan.hostData) + read.offset;
  std::memcpy(copy.weights.data(), from, copy.weights.size() * sizeof(float));
  loadElements(storageOf(job.job.layer), copy.rows.data(),
               from + ss::aligned(copy.count * int64_t(sizeof(float))),
               int64_t(copy.rows.size()));
  if (std::all_of(copy.weights.begin(), copy.weights.end(),
                  [](float w) { return std::isfinite(w); }))
    consolidation::largestFirst(copy.rows.data(), copy.weights.data(),
                                copy.count, width, copy.active);
  *copy.stage = ReadStage::copied;
}

void FrozenRows::download(HostJob &job) {
  CurrentContext current(*context);
  readStates(job);
  for (size_t i = 0; i < job.states.size(); ++i) {
    StateCopy &copy = job.states[i];
    try {
      takeState(job, i, copy);
    } catch (const std::bad_alloc &) {
      *copy.stage = ReadStage::cancelled;
    }
    int64_t &position = job.positions[size_t(copy.target)];
    if (position < 0)
      position = host.at<ss::GatheredState>(plan.hostStates)[i].position;
  }
}

std::span<const int64_t> FrozenRows::positions() {
  int64_t *to = host.at<int64_t>(plan.hostPositions);
  uploads.copyOut(to, CUdeviceptr(reinterpret_cast<uintptr_t>(frozen.position)),
                  size_t(plan.slots) * sizeof(int64_t));
  return {to, size_t(plan.slots)};
}

std::vector<int32_t> FrozenRows::pairs(int32_t layer) const {
  std::vector<int32_t> found(size_t(plan.slots));
  uploads.copyOut(found.data(), counts[size_t(layer)],
                  found.size() * sizeof(int32_t));
  return found;
}

std::vector<int32_t>
FrozenRows::slotsOf(std::span<const int32_t> batch) const {
  std::vector<int32_t> found(batch.size());
  if (!batch.empty())
    uploads.copyOut(found.data(),
                    CUdeviceptr(reinterpret_cast<uintptr_t>(batch.data())),
                    batch.size_bytes());
  return found;
}

bool FrozenRows::isMissing(int32_t layer, int32_t slot) const {
  int32_t since = 0;
  uploads.copyOut(&since,
                  cadenceOf(size_t(plan.layers[size_t(layer)].layer), slot),
                  sizeof since);
  return since % 2 != 0;
}

CUdeviceptr FrozenRows::cadenceOf(size_t layer, int32_t slot) const {
  for (const FrozenLayerPlan &own : plan.layers)
    if (size_t(own.layer) == layer)
      return addressOf(own.since) + CUdeviceptr(slot) * sizeof(int32_t);
  return 0;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

ss::Result FrozenRows::resultOf(const HostJob &job,
                                const StateCopy &copy) const {
  const consolidation::Target &target =
      job.job.targets[size_t(copy.target)];
  const int32_t heads = manifestOf(job.job.layer).heads;
  ss::Result result = {};
  result.epoch = target.epoch;
  result.layer = job.job.layer;
  result.slot = target.slot;
  result.head = int32_t(copy.state - int64_t(target.slot) * heads);
  result.status = statusBits(copy.result.status);
  result.rank =
      copy.result.status == SvdStatus::ok ? copy.rankAfter() : -1;
  return result;
}

/// Adds a job's results behind `used` bytes of data; false: they do not fit.
bool FrozenRows::add(Box &box, const MailboxPlan &places, HostJob &job,
                     int64_t &used) {
  const Storage storage = storageOf(job.job.layer);
  const int64_t rowBytes = tables[size_t(job.job.layer)].row_bytes;
  int64_t needed = used, results = int64_t(box.results.size());
  for (const StateCopy &copy : job.states) {
    results += copy.done;
    if (copy.done)
      needed += ss::packed_bytes(copy.rankAfter(), rowBytes);
  }
  if (needed > plan.room || results > plan.mostStates)
    return false;
  for (size_t i = 0; i < job.states.size(); ++i) {
    const StateCopy &copy = job.states[i];
    if (!copy.done)
      continue;
    ss::Result result = resultOf(job, copy);
    result.sequence = box.sequence;
    result.offset = used;
    if (result.rank > 0) {
      uint8_t *to = host.at<uint8_t>(places.hostData) + used;
      const int64_t weightBytes = int64_t(result.rank) * 4;
      std::memcpy(to, copy.weights.data(), size_t(weightBytes));
      storeElements(storage, to + ss::aligned(weightBytes), copy.rows.data(),
                    result.rank * int64_t(copy.dk + copy.dv));
      used += ss::packed_bytes(result.rank, rowBytes);
    }
    host.at<ss::Result>(places.hostResults)[box.results.size()] = result;
    box.results.push_back({&job, i});
  }
  return true;
}

size_t FrozenRows::publish(int32_t index, std::span<HostJob *const> jobs) {
  CurrentContext current(*context);
  Box &box = boxes[size_t(index)];
  const MailboxPlan &places = plan.boxes[index];
  ++box.sequence;
  box.results.clear();
  int64_t used = 0;
  size_t taken = 0;
  while (taken < jobs.size() && add(box, places, *jobs[taken], used))
    ++taken;
  *host.at<uint64_t>(places.hostCount) = box.results.size();
  *host.at<uint64_t>(places.hostReady) = box.sequence;
  uploads.copyIn(addressOf(places.data), host.at<uint8_t>(places.hostData),
                 size_t(used));
  uploads.copyIn(addressOf(places.results),
                 host.at<ss::Result>(places.hostResults),
                 box.results.size() * sizeof(ss::Result));
  uploads.copyIn(addressOf(places.count), host.at<uint64_t>(places.hostCount),
                 sizeof(uint64_t));
  // What it announces is there: every copy has been waited for.
  uploads.copyIn(addressOf(places.ready), host.at<uint64_t>(places.hostReady),
                 sizeof(uint64_t));
  return taken;
}

bool FrozenRows::isAnswered(int32_t index) const {
  const Box &box = boxes[size_t(index)];
  const uint64_t *answers =
      host.at<uint64_t>(plan.boxes[index].hostAnswers);
  for (size_t i = 0; i < box.results.size(); ++i)
    if (ss::observe(answers + i) / 2 != box.sequence)
      return false;
  return true;
}

void FrozenRows::clear(int32_t index) {
  CurrentContext current(*context);
  boxes[size_t(index)].results.clear();
  uploads.copyIn(addressOf(plan.boxes[index].ready),
                 host.at<uint64_t>(plan.hostZero), sizeof(uint64_t));
}

} // namespace sinkstate::runtime::cuda
