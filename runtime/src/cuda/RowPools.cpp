//===- RowPools.cpp - Rows of all states of an engine on a GPU ------------===//

#include "cuda/RowPools.h"

#include "capi/Failure.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

namespace sinkstate::runtime::cuda {
namespace {

// The texts of device/rows.cuh and of the headers that it includes.
constexpr char kRowsSource[] = {
#include "RowsSource.inc"
};
constexpr char kPoolSource[] = {
#include "PoolSource.inc"
};
constexpr char kTablesSource[] = {
#include "RowTablesSource.inc"
};
constexpr char kElementsSource[] = {
#include "ElementsSource.inc"
};
constexpr char kStagingSource[] = {
#include "StagingSource.inc"
};
constexpr char kForeseeSource[] = {
#include "ForeseeSource.inc"
};

std::string compiled(const KernelCompiler &compiler) {
  return compiler.compile(
      {{"ss_rows", std::string(kRowsSource, sizeof kRowsSource)}},
      {{"pool.cuh", std::string(kPoolSource, sizeof kPoolSource)},
       {"row_tables.cuh", std::string(kTablesSource, sizeof kTablesSource)},
       {"elements.cuh", std::string(kElementsSource, sizeof kElementsSource)},
       {"staging.cuh", std::string(kStagingSource, sizeof kStagingSource)},
       {"foresee.cuh", std::string(kForeseeSource, sizeof kForeseeSource)}})[0];
}

std::vector<LayerLayout> layoutsOf(const CudaLayout &layout) {
  std::vector<LayerLayout> sizes;
  for (const LayerPlaces &places : layout.layers)
    sizes.push_back(places.sizes);
  return sizes;
}

/// Tables that are built on the host and copied as a whole.
class TableImage {
public:
  explicit TableImage(CUdeviceptr begin) : begin(begin) {}

  /// Room for `count` elements, all bytes `fill`; its address on the device.
  template <typename T> T *take(int64_t count, int fill = 0) {
    constexpr size_t kAlignment = 64;
    const size_t offset = (bytes.size() + kAlignment - 1) / kAlignment *
                          kAlignment;
    bytes.resize(offset + size_t(count) * sizeof(T));
    std::memset(bytes.data() + offset, fill, size_t(count) * sizeof(T));
    return reinterpret_cast<T *>(begin + offset);
  }
  /// The bytes of a table that take() has given.
  template <typename T> T *at(T *table) {
    return reinterpret_cast<T *>(bytes.data() +
                                 (reinterpret_cast<CUdeviceptr>(table) - begin));
  }
  const std::vector<char> &image() const { return bytes; }

private:
  CUdeviceptr begin;
  std::vector<char> bytes;
};

/// Alignment of the tables of a pool, of the layers and of the counters.
constexpr int64_t kAlignmentSlack = 1024;

int64_t bytesOfTables(const RowPoolLayout &sizes) {
  return sizes.tableBytes +
         int64_t(sizes.poolOf.size() * sizeof(ss::RowLayer)) +
         int64_t(sizes.pools.size() + 1) * kAlignmentSlack;
}

} // namespace

PoolPlan planPools(const Manifest &manifest, const CudaLayout &layout) {
  const RowPoolLayout sizes(manifest, layoutsOf(layout), layout.slots);
  PoolPlan plan;
  plan.tables = bytesOfTables(sizes);
  plan.worst = plan.tables + sizes.worstBytes;
  plan.expected = plan.tables + sizes.expectedBytes;
  plan.pools = sizes.pools;
  return plan;
}

int64_t PoolPlan::least(int64_t unit) const {
  int64_t bytes = 0;
  for (const RowPoolSizes &pool : pools)
    bytes += pool.mappedBytes(1, std::max<int64_t>(1, unit));
  return bytes;
}

RowPools::RowPools(std::shared_ptr<const Context> owner,
                   const KernelCompiler &compiler, const Manifest &manifest,
                   const CudaLayout &layout, CUdeviceptr begin, int64_t limit,
                   const OwnStream &own)
    : context(std::move(owner)),
      sizes(manifest, layoutsOf(layout), layout.slots),
      module(context, "ss_rows", compiled(compiler)),
      planFunction(module.function("ss_plan_rows")),
      foreseeFunction(module.function("ss_foresee_rows")),
      placeFunction(module.function("ss_place_rows")),
      provideFunction(module.function("ss_provide_rows")),
      moveFunction(module.function("ss_move_rows")),
      moveAllFunction(module.function("ss_move_all")),
      checkFunction(module.function("ss_check_range")),
      widenFunction(module.function("ss_widen_back")),
      roundFunction(module.function("ss_round_back")),
      settleFunction(module.function("ss_settle_rows")),
      cancelFunction(module.function("ss_cancel_rows")),
      releaseFunction(module.function("ss_release_rows")),
      tables(context, size_t(bytesOfTables(sizes))) {
  budget.limit = limit == 0 ? 0 : limit - int64_t(tables.bytes());
  if (limit > 0 && context->mappingUnit() == 0)
    sizes.fitInto(budget.limit);
  for (const RowPoolSizes &pool : sizes.pools)
    memory.emplace_back(context, pool, budget);
  fillTables(manifest, layout, begin, own);
}

CUdeviceptr RowPools::rowsOf(size_t layer) const {
  return memory[size_t(sizes.poolOf[layer])].rows();
}

CUdeviceptr RowPools::weightsOf(size_t layer) const {
  return memory[size_t(sizes.poolOf[layer])].weights();
}

ss::RowLayer RowPools::layerTable(const LayerManifest &layer,
                                  const LayerPlaces &places, CUdeviceptr begin,
                                  int32_t pool) const {
  auto address = [&]<typename T>(int64_t offset, T *) {
    return reinterpret_cast<T *>(begin + CUdeviceptr(offset));
  };
  int32_t *words = nullptr;
  int64_t *longs = nullptr;
  const LayerLayout &layout = places.sizes;
  ss::RowLayer table = {};
  table.row_base = address(places.rowBase, longs);
  table.row_capacity = address(places.rowCapacity, words);
  table.rank = address(places.rank, words);
  table.status = address(places.status, words);
  table.count = address(places.count, words);
  table.due = address(places.due, words);
  table.due_count = address(places.dueCount, words);
  table.work = address(places.work, words);
  table.work_count = address(places.workCount, words);
  table.dense_work = address(places.denseWork, words);
  table.dense_count = address(places.denseCount, words);
  table.dense_place = address(places.densePlace, longs);
  table.folds = address(places.folds, words);
  table.back_count = address(places.backCount, words);
  table.most_back = places.mostBack;
  table.back_work = address(places.backWork, words);
  table.back_matrix = address(places.backMatrix, longs);
  table.back_base = address(places.backBase, longs);
  table.back_rank = address(places.backRank, words);
  table.back_status = address(places.backStatus, words);
  float *floats = nullptr;
  table.staged_matrix = address(places.stagedMatrix, floats);
  table.staged_factors = address(places.stagedFactors, floats);
  table.staged_weights = address(places.stagedWeights, floats);
  table.back_rows = address(places.backRows, longs);
  table.most_staged = places.mostStaged;
  table.storage = int32_t(layout.storage);
  table.asked = address(places.asked, words);
  table.asked_count = address(places.askedCount, words);
  table.most_asked = int32_t(2 * layout.states);
  table.last = address(places.last, words);
  table.last_count = address(places.lastCount, words);
  table.noted = address(places.noted, words);
  table.heads = layer.heads;
  table.pool = pool;
  table.pairs = layer.buffer + layer.draft;
  table.before = layer.compactsBefore;
  table.buffer = layer.buffer;
  table.phase = layer.phase;
  table.bound = boundOf(layer);
  table.break_even =
      layout.denseFallback ? int32_t(layout.breakEvenRank) : INT32_MAX;
  table.dense_rows = int32_t(layout.denseRows);
  table.row_elements = int32_t(layout.rowFloats);
  table.out_is_rows = layout.storage == Storage::F32;
  table.matrix_elements = int32_t(layout.denseFloats);
  table.live_row =
      int32_t(layout.liveBytes(2, false) - layout.liveBytes(1, false));
  table.live_buffer = int32_t(layout.liveBytes(1, false)) - table.live_row;
  if (layer.sinkForm)
    table.shared_bytes = address(places.sharedBytes, words);
  table.live_matrix = holdsMatrices(layout.storage)
                          ? int32_t(layout.liveBytes(-1, false))
                          : INT32_MAX;
  table.sink_rows = layer.sinkForm;
  table.room = kRoomRows;
  table.spare = kSpareRows;
  return table;
}

void RowPools::fillTables(const Manifest &manifest, const CudaLayout &layout,
                          CUdeviceptr begin, const OwnStream &own) {
  TableImage image(tables.address());
  arguments.layers = image.take<ss::RowLayer>(int64_t(sizes.poolOf.size()));
  arguments.pools = image.take<ss::RowPool>(int64_t(sizes.pools.size()));
  arguments.counters = image.take<int64_t>(ss::kRowCounters);
  arguments.faults = image.take<int32_t>(1);
  arguments.pool_count = int32_t(sizes.pools.size());
  arguments.position =
      reinterpret_cast<const int64_t *>(begin + CUdeviceptr(layout.position));
  arguments.slots = layout.slots;
  for (size_t i = 0; i < sizes.pools.size(); ++i) {
    const RowPoolSizes &size = sizes.pools[i];
    ss::RowPool pool = {};
    pool.rows = reinterpret_cast<char *>(memory[i].rows());
    pool.weights = reinterpret_cast<float *>(memory[i].weights());
    pool.row_bytes = size.rowBytes;
    pool.chunk_rows = size.chunkRows;
    pool.chunk_count = size.chunkCount;
    pool.class_count = int32_t(size.capacity.size());
    pool.most_requests = size.mostRequests();
    std::copy(size.capacity.begin(), size.capacity.end(), pool.capacity);
    std::copy(size.blocks.begin(), size.blocks.end(), pool.blocks);
    auto *classOf = image.take<int32_t>(int64_t(size.classOf.size()));
    std::copy(size.classOf.begin(), size.classOf.end(), image.at(classOf));
    pool.class_of = classOf;
    pool.chunk_class = image.take<int32_t>(size.chunkCount, 0xff);
    pool.free_blocks =
        image.take<uint32_t>(int64_t(size.chunkCount) * ss::kMaskWords);
    pool.leaving = image.take<int32_t>(size.chunkCount);
    pool.requests = image.take<ss::RowRequest>(size.mostRequests());
    pool.granted = image.take<int32_t>(size.mostRequests());
    pool.report = memory[i].reportOnDevice();
    pool.limit = memory[i].limitOnDevice();
    pool.bound = INT32_MAX;
    image.at(arguments.pools)[i] = pool;
  }
  auto *layers = const_cast<ss::RowLayer *>(arguments.layers);
  for (size_t l = 0; l < sizes.poolOf.size(); ++l) {
    tableOf.push_back(arguments.layer_count);
    if (sizes.poolOf[l] >= 0)
      image.at(layers)[arguments.layer_count++] =
          layerTable(manifest.layers[l], layout.layers[l], begin,
                     sizes.poolOf[l]);
  }
  listed.resize(size_t(arguments.layer_count));
  if (image.image().size() > tables.bytes())
    fail(SS_INTERNAL, "tables of row pools take ", image.image().size(),
         " bytes, expected at most ", tables.bytes(), ": report it");
  own.copyIn(tables.address(), image.image().data(), image.image().size());
}

void RowPools::launch(CUfunction function, unsigned x, unsigned y,
                      unsigned threads, CUstream stream,
                      void **parameters) const {
  SS_CUDA(context->driver(), cuLaunchKernel(function, x, y, 1, threads, 1, 1, 0,
                                            stream, parameters, nullptr));
}

/// Blocks for work of any size: they go on to what is left.
unsigned RowPools::wideGrid() const {
  return unsigned(context->multiprocessors()) * 4;
}

void RowPools::list(int32_t ahead, CUstream stream) {
  if (arguments.layer_count > 0)
    list(0, arguments.layer_count, ahead, stream);
}

void RowPools::planLayer(size_t layer, int32_t ahead, CUstream stream,
                         bool counted) {
  list(tableOf[layer], 1, ahead, stream);
  provide(stream, counted);
}

void RowPools::list(int32_t first, int32_t count, int32_t ahead,
                    CUstream stream) {
  constexpr unsigned kThreads = 512;
  ss::RowTables given = arguments;
  void *parameters[] = {&given, &first, &ahead};
  launch(planFunction, unsigned(count), 1, kThreads, stream, parameters);
  std::fill_n(listed.begin() + first, count, true);
  unanswered = true;
}

/// Copies what moves, and sets where states are.
void RowPools::move(size_t layer, CUstream stream) const {
  constexpr unsigned kBlocks = 64, kThreads = 128;
  ss::RowTables given = arguments;
  int32_t index = tableOf[layer];
  void *parameters[] = {&given, &index};
  launch(moveFunction, kBlocks, 1, kThreads, stream, parameters);
}

void RowPools::moveOthers(int32_t layer, CUstream stream) const {
  if (arguments.layer_count == 0)
    return;
  constexpr unsigned kThreads = 128;
  ss::RowTables given = arguments;
  int32_t except = layer < 0 || sizes.poolOf[size_t(layer)] < 0
                       ? -1
                       : tableOf[size_t(layer)];
  void *parameters[] = {&given, &except};
  launch(moveAllFunction, wideGrid(), unsigned(given.pool_count), kThreads,
         stream, parameters);
}

void RowPools::foresee(CUstream stream) const {
  if (arguments.layer_count == 0)
    return;
  // A warp a slot, up to so many: one after the other they would wait for memory.
  constexpr unsigned kMostBlocks = 16, kThreads = 256, kSlots = kThreads / 32;
  ss::RowTables given = arguments;
  void *parameters[] = {&given};
  const unsigned blocks = (unsigned(given.slots) + kSlots - 1) / kSlots;
  launch(foreseeFunction, std::min(blocks, kMostBlocks),
         unsigned(given.layer_count), kThreads, stream, parameters);
}

/// Answers what was asked, and reports.
void RowPools::provide(CUstream stream, bool counted) {
  if (arguments.layer_count == 0)
    return;
  constexpr unsigned kAllThreads = 1024;
  ss::RowPool *pools = arguments.pools;
  void *parameters[] = {&pools};
  launch(provideFunction, unsigned(arguments.pool_count), 1, kAllThreads,
         stream, parameters);
  unanswered = false;
  for (PoolMemory &pool : memory)
    if (counted)
      pool.noteStep();
}

void RowPools::launchOverMatrices(CUfunction function, size_t layer,
                                  unsigned blocks, CUstream stream) const {
  constexpr unsigned kThreads = 256;
  ss::RowTables given = arguments;
  int32_t index = tableOf[layer];
  void *parameters[] = {&given, &index};
  launch(function, blocks, 1, kThreads, stream, parameters);
}

void RowPools::checkRange(size_t layer, CUstream stream) const {
  constexpr unsigned kBlocks = 64;
  launchOverMatrices(checkFunction, layer, kBlocks, stream);
}

void RowPools::widenBack(size_t layer, CUstream stream) const {
  launchOverMatrices(widenFunction, layer, kMostStaged, stream);
}

void RowPools::roundBack(size_t layer, CUstream stream) const {
  launchOverMatrices(roundFunction, layer, kMostStaged, stream);
}

void RowPools::settle(CUstream stream) {
  launchOverRequests(settleFunction, -1, stream);
  std::fill(listed.begin(), listed.end(), false);
}

void RowPools::settleLayer(size_t layer, CUstream stream) {
  launchOverRequests(settleFunction, tableOf[layer], stream);
  listed[size_t(tableOf[layer])] = false;
}

void RowPools::cancel(const std::vector<bool> &begun, CUstream stream,
                      bool counted) {
  if (std::find(listed.begin(), listed.end(), true) == listed.end())
    return;
  if (unanswered)
    provide(stream, counted);
  const bool all =
      std::find(listed.begin(), listed.end(), false) == listed.end() &&
      std::find(begun.begin(), begun.end(), true) == begun.end();
  if (all)
    launchOverRequests(cancelFunction, -1, stream, true);
  for (size_t layer = 0; !all && layer < begun.size(); ++layer)
    if (sizes.poolOf[layer] >= 0 && listed[size_t(tableOf[layer])])
      launchOverRequests(cancelFunction, tableOf[layer], stream, !begun[layer]);
  std::fill(listed.begin(), listed.end(), false);
}

/// `again` is a parameter of those functions that have it.
void RowPools::launchOverRequests(CUfunction function, int32_t layer,
                                  CUstream stream, int32_t again) const {
  if (arguments.layer_count == 0)
    return;
  constexpr unsigned kBlocks = 8, kThreads = 256;
  ss::RowTables given = arguments;
  void *parameters[] = {&given, &layer, &again};
  launch(function, kBlocks, unsigned(given.pool_count), kThreads, stream,
         parameters);
}

bool RowPools::place(size_t layer, std::span<const int32_t> states,
                     std::span<const int32_t> rows, int32_t *scratch,
                     CUstream stream) {
  const auto pool = size_t(sizes.poolOf[layer]);
  const RowPoolSizes &size = sizes.pools[pool];
  std::vector<int64_t> blocks(size.capacity.size());
  for (int32_t wanted : rows)
    ++blocks[size_t(size.classOf[size_t(wanted)])];
  int64_t chunks = 0;
  for (size_t c = 0; c < blocks.size(); ++c)
    chunks += (blocks[c] + size.blocks[c] - 1) / size.blocks[c];
  if (!memory[pool].reserve(chunks))
    return false;
  auto upload = [&](int32_t *to, std::span<const int32_t> from) {
    SS_CUDA(context->driver(),
            cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to), from.data(),
                              from.size_bytes(), stream));
  };
  auto count = int32_t(states.size());
  int32_t *second = scratch + count;
  upload(scratch, states);
  upload(second, rows);
  ss::RowTables given = arguments;
  int32_t index = tableOf[layer];
  void *parameters[] = {&given, &index, &scratch, &second, &count};
  constexpr unsigned kThreads = 256;
  launch(placeFunction, wideGrid(), 1, kThreads, stream, parameters);
  foresee(stream);
  provide(stream, true);
  moveOthers(-1, stream);
  return true;
}

void RowPools::release(int32_t slot, bool owned, CUstream stream) const {
  if (arguments.layer_count == 0)
    return;
  constexpr unsigned kThreads = 128;
  ss::RowTables given = arguments;
  int32_t hasOwner = owned;
  void *parameters[] = {&given, &slot, &hasOwner};
  launch(releaseFunction, unsigned(given.layer_count), 1, kThreads, stream,
         parameters);
}

/// What the next step may take, for every pool, before any has more: under a limit
/// the first ones would leave the last without. Room for the steps behind it is shared
/// out alike. Returns whether some pool lacks the former.
bool RowPools::mapMemory(const PoolDemand::Slots &slots, bool isCurrent,
                         bool mayUnmap) {
  for (PoolMemory &pool : memory) {
    pool.look(slots, isCurrent);
    if (mayUnmap)
      pool.unmapUnused();
  }
  for (PoolMemory &pool : memory)
    pool.mapNeeded();
  if (std::any_of(memory.begin(), memory.end(),
                  [](const PoolMemory &pool) { return pool.lacks(); }))
    return true;
  int64_t wanted = 0;
  for (const PoolMemory &pool : memory)
    wanted += pool.wantedBytes();
  const int64_t left = budget.limit - budget.held;
  const double share =
      budget.limit == 0 || wanted <= left ? 1 : double(left) / double(wanted);
  for (PoolMemory &pool : memory)
    pool.mapWanted(share);
  return false;
}

PoolMemory::Room RowPools::tend(const PoolDemand::Slots &slots, bool released,
                                bool isCurrent, bool stepFollows, bool mayUnmap,
                                CUstream stream) {
  const bool lacks = mapMemory(slots, isCurrent, mayUnmap);
  auto worst = PoolMemory::Room::Enough;
  for (PoolMemory &pool : memory)
    worst = std::max(worst, pool.settle(readers > 0, lacks));
  // Where no step follows nobody else would say what is free now, nor that a
  // lower limit was seen.
  for (const PoolMemory &pool : memory)
    released |= pool.waitsForReport();
  if (released && !stepFollows && arguments.layer_count > 0)
    report(stream);
  return worst;
}

void RowPools::report(CUstream stream) {
  foresee(stream);
  provide(stream, true);
}

RowPools::Counters RowPools::counters(const OwnStream &own) const {
  int64_t counted[ss::kRowCounters] = {};
  own.copyOut(counted, reinterpret_cast<CUdeviceptr>(arguments.counters),
              sizeof counted);
  Counters result;
  result.folds = counted[ss::kFolds];
  result.wentDense = counted[ss::kWentDense];
  result.wentFactored = counted[ss::kWentFactored];
  result.tightened = counted[ss::kTightenedCount];
  result.outOfRange = counted[ss::kOutOfRangeCount];
  double held = 0, live = 0;
  for (size_t i = 0; i < memory.size(); ++i) {
    const ss::PoolReport report = memory[i].report();
    const RowPoolSizes &pool = sizes.pools[i];
    const int64_t rowBytes = pool.rowBytes + int64_t(sizeof(float));
    result.blockBytes += report.used_rows * rowBytes;
    result.steps = report.step;
    held += double(report.chunk_sum) * double(pool.chunkRows * rowBytes);
    live += double(report.live_sum);
  }
  if (result.steps > 0) {
    result.meanHeld = double(tables.bytes()) + held / double(result.steps);
    result.meanLive = live / double(result.steps);
  }
  return result;
}

RowPools::Usage RowPools::usage() const {
  Usage usage;
  for (size_t i = 0; i < memory.size(); ++i) {
    const RowPoolSizes &pool = sizes.pools[i];
    const ss::PoolReport report = memory[i].report();
    const int64_t rowBytes = pool.rowBytes + int64_t(sizeof(float));
    usage.blocks += report.used_rows * rowBytes;
    usage.chunks += report.used_chunks * (pool.chunkRows * rowBytes);
    usage.mapped += memory[i].mappedChunks() * (pool.chunkRows * rowBytes);
  }
  return usage;
}

std::vector<RowPools::Span> RowPools::keepTables() {
  for (PoolMemory &pool : memory)
    pool.keepMapped();
  // Behind the layers, the pools and the two counts come arrays of the pools.
  const auto arrays = reinterpret_cast<CUdeviceptr>(arguments.faults + 1);
  std::vector<Span> spans = {
      {arrays, size_t(tables.address() + tables.bytes() - arrays)}};
  for (int32_t i = 0; i < arguments.pool_count; ++i) {
    const auto pool = reinterpret_cast<CUdeviceptr>(arguments.pools + i);
    auto add = [&](size_t from, size_t to) {
      spans.push_back({pool + from, to - from});
    };
    add(offsetof(ss::RowPool, asked), offsetof(ss::RowPool, step));
    add(offsetof(ss::RowPool, live), offsetof(ss::RowPool, squeezed));
  }
  return spans;
}

int32_t RowPools::takeFaults(const OwnStream &own) const {
  const auto word = reinterpret_cast<CUdeviceptr>(arguments.faults);
  int32_t faults = 0;
  own.copyOut(&faults, word, sizeof faults);
  if (faults != 0) {
    own.zero(word, sizeof faults);
    own.wait();
  }
  return faults;
}

} // namespace sinkstate::runtime::cuda
