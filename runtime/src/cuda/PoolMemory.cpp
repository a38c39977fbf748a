//===- PoolMemory.cpp - The memory behind one row pool --------------------===//

#include "cuda/PoolMemory.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace sinkstate::runtime::cuda {
namespace {

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Steps without a report that are allowed for: a host that queues more than
/// these ahead of the GPU is far from the end of any growth.
constexpr int64_t kMostUnseen = 16;
/// What is forgotten of the largest step with every step.
constexpr double kForgetting = 1.0 / 16;
/// Calls during which memory has to be too much before it is given back.
constexpr int64_t kCalmCalls = 32;
/// Reports behind one that was on its way when a slot joined.
constexpr int64_t kLateReports = 2;

} // namespace

int64_t PoolDemand::worstChunks(int64_t slots) const {
  // And a chunk for every class that may be without one.
  return divideUp(slots * sizes->dueRows, sizes->chunkRows) +
         std::min<int64_t>(slots * sizes->dueStates,
                           int64_t(sizes->capacity.size()));
}

int64_t PoolDemand::recentChunks() const {
  // Twice: ranks that grow take more with every buffer.
  return int64_t(std::ceil(2 * recent));
}

/// What a placing reports is about states without ranks, and a step of several
/// tokens foresees nothing.
void PoolDemand::look(const ss::PoolReport &report, const Slots &slots,
                      int64_t unseen) {
  if (report.coming < 0)
    blind = kCalmCalls;
  else if (report.step <= ignored || report.step == 0)
    blind = std::max<int64_t>(blind, 1);
  else
    blind = std::max<int64_t>(0, blind - 1);
  foreseen = std::max(0, report.coming);
  if (report.step >= joinedStep)
    joined = 0;
  if (slots.joined > 0) {
    joined += slots.joined;
    joinedStep = report.step + unseen + kLateReports;
  }
  inUse = slots.inUse;
  // Some may have left again.
  unknown = std::min(joined + slots.joining, inUse);
}

int64_t PoolDemand::chunks(const ss::PoolReport &report, const Slots &slots,
                           int64_t unseen) {
  look(report, slots, unseen);
  const int64_t steps = std::max<int64_t>(0, report.step - lastStep);
  lastStep = report.step;
  recent *= std::pow(1 - kForgetting, double(steps));
  if (report.step > ignored)
    recent = std::max(recent, double(report.fresh + report.missing));
  if (inUse == 0)
    return report.used_chunks;
  const int64_t two = blind > 0 ? 2 * worstChunks(inUse)
                                : foreseen + 2 * worstChunks(unknown);
  return report.used_chunks + report.missing +
         std::max(two, (2 + std::min(unseen, kMostUnseen)) * recentChunks());
}

void PoolMemory::Budget::add(int64_t bytes) {
  held += bytes;
  peak = std::max(peak, held);
}

PoolMemory::PoolMemory(std::shared_ptr<const Context> context,
                       const RowPoolSizes &sizes, Budget &budget)
    : sizes(&sizes), budget(&budget),
      rowRange(context, size_t(sizes.rowRange(sizes.chunkCount))),
      weightRange(context, size_t(sizes.weightRange(sizes.chunkCount))),
      words(context, kReportOffset + sizeof(ss::PoolReport)), demand(sizes) {
  // What could only be allocated as a whole.
  budget.add(heldBytes());
  noteReadable();
  allow(mappedChunks());
}

int64_t PoolMemory::mappedChunks() const {
  return std::min<int64_t>(
      sizes->chunkCount, sizes->chunksWithin(int64_t(rowRange.mappedBytes()),
                                             int64_t(weightRange.mappedBytes())));
}

ss::PoolReport PoolMemory::report() const {
  volatile ss::PoolReport *from =
      words.at<volatile ss::PoolReport>(kReportOffset);
  ss::PoolReport copy;
  // The step is written last: a report that was finished meanwhile is read again,
  // and is then of a later step. One that is just being written, which no step says
  // yet, may be read in part: numbers of this step and of the next one, both of which
  // are true of the pool within a step. Steps are far apart, and what is decided by
  // them is decided anew at the next.
  do {
    copy.step = from->step;
    std::atomic_thread_fence(std::memory_order_acquire);
    copy.used_rows = from->used_rows;
    copy.denied = from->denied;
    copy.live_sum = from->live_sum;
    copy.chunk_sum = from->chunk_sum;
    copy.limit = from->limit;
    copy.used_chunks = from->used_chunks;
    copy.top = from->top;
    copy.fresh = from->fresh;
    copy.missing = from->missing;
    copy.coming = from->coming;
    std::atomic_thread_fence(std::memory_order_acquire);
  } while (copy.step != from->step);
  return copy;
}

void PoolMemory::allow(int64_t chunks) {
  chunks = std::min<int64_t>(chunks, sizes->chunkCount);
  std::atomic_thread_fence(std::memory_order_release);
  limit() = ++generation << 32 | chunks |
            (squeezedCalls > 0 ? ss::kSqueezed : 0);
}

/// For a while once it is wanted: it takes two moves a compaction.
void PoolMemory::squeeze(bool wanted) {
  const bool before = squeezedCalls > 0;
  squeezedCalls = wanted ? kCalmCalls : std::max<int64_t>(0, squeezedCalls - 1);
  if (before != (squeezedCalls > 0))
    allow(allowed());
}

/// Bytes to map for so many chunks, beside those that are.
int64_t PoolMemory::additionFor(int64_t chunks) const {
  return int64_t(rowRange.additionFor(size_t(sizes->rowRange(chunks))) +
                 weightRange.additionFor(size_t(sizes->weightRange(chunks))));
}

bool PoolMemory::mapChunks(int64_t chunks) {
  const auto rows = size_t(sizes->rowRange(chunks));
  const auto weights = size_t(sizes->weightRange(chunks));
  const int64_t before = heldBytes();
  if (!budget->admits(additionFor(chunks)))
    return false;
  const bool mapped = rowRange.growTo(rows) && weightRange.growTo(weights);
  budget->add(heldBytes() - before);
  noteReadable();
  return mapped;
}

/// Bytes of rows to keep for so many chunks: none for none, since then no state
/// has an owner.
size_t PoolMemory::bytesOf(int64_t chunks) const {
  return chunks == 0 ? 0 : size_t(sizes->rowRange(chunks));
}

/// What a reader may read has both its rows and its weights.
void PoolMemory::noteReadable() {
  const int64_t chunks = mappedChunks();
  readable.store(chunks == 0 ? 0
                             : ss::kScrapRows +
                                   chunks * int64_t(sizes->chunkRows),
                 std::memory_order_release);
}

void PoolMemory::unmapBehind(int64_t chunks) {
  const int64_t before = heldBytes();
  rowRange.shrinkTo(bytesOf(chunks));
  weightRange.shrinkTo(chunks == 0 ? 0 : size_t(sizes->weightRange(chunks)));
  budget->add(heldBytes() - before);
  noteReadable();
}

bool PoolMemory::reserve(int64_t chunks) {
  const int64_t wanted = std::min<int64_t>(report().used_chunks + chunks,
                                           sizes->chunkCount);
  if (wanted <= allowed())
    return true;
  if (!mapChunks(wanted))
    return false;
  allow(mappedChunks());
  return true;
}

void PoolMemory::unmapUnused() {
  if (grows || seen.limit != limit() || seen.top > allowed() ||
      !waitsForReport())
    return;
  unmapBehind(allowed());
  allow(mappedChunks());
}

/// Lowers the limit to what was wanted lately. What lies behind it is unmapped once
/// the device has seen it and holds nothing there.
void PoolMemory::giveBack(int64_t most, bool atOnce) {
  if (grows)
    return;
  mostWanted = std::max(mostWanted, most);
  if (++calls < kCalmCalls && !atOnce)
    return;
  const int64_t kept = atOnce ? most : mostWanted;
  calls = mostWanted = 0;
  if (kept < allowed() &&
      rowRange.mappedAfterShrinkTo(bytesOf(kept)) < rowRange.mappedBytes())
    allow(kept);
}

void PoolMemory::look(const PoolDemand::Slots &slots, bool isCurrent) {
  seen = report();
  queued = std::max(queued, seen.step);
  isInUse = slots.inUse > 0;
  wanted = std::min<int64_t>(demand.chunks(seen, slots, queued - seen.step),
                             sizes->chunkCount);
  const int64_t step =
      isCurrent ? demand.certainChunks() : demand.stepChunks();
  needed = isInUse ? std::min(wanted, seen.used_chunks + seen.missing + step) : 0;
}

/// As much as there is, in halves of what is missing.
void PoolMemory::growTo(int64_t chunks) {
  for (int64_t more = chunks - allowed(); more > 0; more /= 2)
    if (mapChunks(allowed() + more)) {
      allow(mappedChunks());
      return;
    }
}

PoolMemory::Room PoolMemory::settle(bool keep, bool othersLack) {
  squeeze(!keep && (wanted > allowed() || budget->isShort()));
  giveBack(othersLack ? needed : wanted, othersLack || !isInUse);
  if (isInUse && mappedChunks() == 0)
    return Room::None;
  return lacks() ? Room::Short : Room::Enough;
}

} // namespace sinkstate::runtime::cuda
