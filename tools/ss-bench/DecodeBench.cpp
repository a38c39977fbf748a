//===- DecodeBench.cpp - Time of decode steps on a GPU --------------------===//

#include "DecodeBench.h"

#include "capi/Failure.h"
#include "engine/StateEngine.h"

#include <algorithm>
#include <numeric>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;
using namespace ss_bench;

namespace {

/// Random numbers are made once and copied as often as they fit.
constexpr size_t kPatternFloats = size_t(1) << 24;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Rows for the largest rank that is drawn, and two buffers more.
int32_t rowCapacity(const Manifest &manifest, int32_t slots) {
  int64_t rows = 1;
  for (const LayerManifest &layer : manifest.layers)
    rows = std::max(rows, LayerLayout(layer, slots, false).breakEvenRank +
                              2 * layer.buffer + layer.active);
  return int32_t(rows);
}

ss_engine_options engineOptions(const BenchOptions &bench,
                                const Manifest &manifest, int32_t batch) {
  ss_engine_options options = {};
  options.struct_size = sizeof options;
  options.slots = batch;
  options.device = SS_DEVICE_CUDA;
  options.device_ordinal = bench.device;
  options.dense_fallback = options.consolidate_every = -1;
  options.row_capacity = rowCapacity(manifest, batch);
  return resolveOptions(options);
}

} // namespace

DecodeBench::DecodeBench(const BenchOptions &bench, const RankProfile &profile,
                         int32_t batch)
    : options(bench), batch(batch), package(Package::open(bench.package)),
      driver(Driver::get()), context(Context::open(driver, bench.device)),
      current(std::make_unique<CurrentContext>(*context)),
      engine(std::make_unique<Engine>(package, engineOptions(bench, package->manifest(),
                                                    batch),
                                      driver)) {
  const Driver::Functions &call = driver->functions();
  if (!call.cuEventElapsedTime || !call.cuGraphLaunch || !call.cuMemcpyDtoDAsync)
    fail(SS_DEVICE_UNAVAILABLE, "the driver has no graphs or events");
  SS_CUDA(*driver, cuStreamCreate(&stream, kStreamNonBlocking));
  SS_CUDA(*driver, cuEventCreate(&begin, 0));
  SS_CUDA(*driver, cuEventCreate(&end, 0));
  std::vector<int32_t> list;
  for (int32_t row = 0; row < batch; ++row)
    list.push_back(engine->allocateSlot(stream));
  slots = static_cast<int32_t *>(
      engine->allocateMemory(list.size() * sizeof(int32_t)));
  engine->copyIn(slots, list.data(), list.size() * sizeof(int32_t), stream);
  makeInputs();
  fillStates(profile);
}

DecodeBench::~DecodeBench() {
  const Driver::Functions &call = driver->functions();
  for (const LayerArrays &a : arrays)
    for (float *array : {a.q, a.k, a.v, a.gate, a.beta, a.y, a.aLog, a.dtBias})
      (void)call.cuMemFree(reinterpret_cast<CUdeviceptr>(array));
  (void)call.cuMemFree(reinterpret_cast<CUdeviceptr>(slots));
  (void)call.cuEventDestroy(begin);
  (void)call.cuEventDestroy(end);
  (void)call.cuStreamDestroy(stream);
}

float *DecodeBench::randomArray(int64_t count, float mean, float deviation) {
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &x : values)
    x = normal(random);
  auto *array = static_cast<float *>(
      engine->allocateMemory(values.size() * sizeof(float)));
  engine->copyIn(array, values.data(), values.size() * sizeof(float), stream);
  return array;
}

void DecodeBench::makeInputs() {
  for (const LayerManifest &layer : package->manifest().layers) {
    const int64_t rows = batch, heads = layer.heads;
    const int64_t gates = heads * (layer.channelDecay ? layer.dk : 1);
    LayerArrays a;
    a.q = randomArray(rows * layer.keyHeads * layer.dk, 0, 0.1f);
    a.k = randomArray(rows * layer.keyHeads * layer.dk, 0, 0.1f);
    a.v = randomArray(rows * heads * layer.dv, 0, 1);
    a.gate = randomArray(rows * gates, 0, 1);
    a.beta = randomArray(rows * heads, 0, 1);
    a.y = randomArray(rows * heads * layer.dv, 0, 1);
    a.aLog = randomArray(heads, -2, 0.1f);
    a.dtBias = randomArray(gates, -2, 0.1f);
    arrays.push_back(a);
  }
}

/// Components of falling weight with random directions of about unit length.
void DecodeBench::fillStates(const RankProfile &profile) {
  float *source = randomArray(int64_t(kPatternFloats), 0, 0.1f);
  for (size_t l = 0; l < arrays.size(); ++l) {
    const LayerManifest &layer = package->manifest().layers[l];
    const LayerPlaces &places = engine->places().layers[l];
    ranks.emplace_back();
    if (layer.denseForm)
      continue;
    const int64_t states = places.sizes.states;
    const int32_t most = std::min<int32_t>(
        places.maxRank, int32_t(places.sizes.breakEvenRank));
    for (int64_t state = 0; state < states; ++state)
      ranks[l].push_back(profile.draw(random, most));
    sortRanks(ranks[l], options.order);
    const int64_t floats = states * places.capacity * places.sizes.rowFloats;
    const CUdeviceptr rows = engine->begin() + CUdeviceptr(places.rows);
    for (int64_t at = 0; at < floats; at += int64_t(kPatternFloats)) {
      const int64_t count =
          std::min<int64_t>(int64_t(kPatternFloats), floats - at);
      SS_CUDA(*driver,
              cuMemcpyDtoDAsync(rows + CUdeviceptr(at) * sizeof(float),
                                reinterpret_cast<CUdeviceptr>(source),
                                size_t(count) * sizeof(float), stream));
    }
    std::vector<float> weights(size_t(states * places.capacity));
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = 1.0f / float(1 + i % size_t(places.capacity));
    engine->copyIn(reinterpret_cast<void *>(engine->begin() +
                                            CUdeviceptr(places.weights)),
                   weights.data(), weights.size() * sizeof(float), stream);
  }
  restoreRanks();
  engine->freeMemory(source);
}

void DecodeBench::restoreRanks() {
  for (size_t l = 0; l < ranks.size(); ++l)
    if (!ranks[l].empty())
      engine->copyIn(
          reinterpret_cast<void *>(
              engine->begin() +
              CUdeviceptr(engine->places().layers[l].rank)),
          ranks[l].data(), ranks[l].size() * sizeof(int32_t), stream);
}

void DecodeBench::setCounts(int32_t count) {
  for (size_t l = 0; l < ranks.size(); ++l) {
    if (ranks[l].empty())
      continue;
    const LayerManifest &layer = package->manifest().layers[l];
    const std::vector<int32_t> counts(size_t(batch),
                                      std::min(count, layer.buffer - 1));
    engine->copyIn(reinterpret_cast<void *>(
                       engine->begin() +
                       CUdeviceptr(engine->places().layers[l].count)),
                   counts.data(), counts.size() * sizeof(int32_t), stream);
  }
}

ss_decode_args DecodeBench::argsOf(size_t layer) const {
  const LayerArrays &a = arrays[layer];
  ss_decode_args args = {};
  args.struct_size = sizeof args;
  args.batch = batch;
  args.slots = slots;
  args.q = {a.q, 0};
  args.k = {a.k, 0};
  args.v = {a.v, 0};
  args.gate = {a.gate, 0};
  args.beta = {a.beta, 0};
  args.a_log = a.aLog;
  args.dt_bias = a.dtBias;
  args.y = a.y;
  args.stream = stream;
  return args;
}

void DecodeBench::enqueueStep() {
  const std::span<const int32_t> list(slots, size_t(batch));
  engine->beginStep(list, stream);
  for (size_t l = 0; l < arrays.size(); ++l)
    engine->decodeLayer(int32_t(l), argsOf(l));
  engine->endStep(list, stream);
}

void DecodeBench::enqueueDecode() {
  for (size_t l = 0; l < arrays.size(); ++l)
    engine->launchDecode(int32_t(l), argsOf(l));
}

CUgraphExec DecodeBench::capture(void (DecodeBench::*enqueue)()) {
  SS_CUDA(*driver, cuStreamBeginCapture(stream, kCaptureModeThreadLocal));
  (this->*enqueue)();
  CUgraph graph = nullptr;
  SS_CUDA(*driver, cuStreamEndCapture(stream, &graph));
  CUgraphExec executable = nullptr;
  SS_CUDA(*driver, cuGraphInstantiateWithFlags(&executable, graph, 0));
  SS_CUDA(*driver, cuGraphDestroy(graph));
  return executable;
}

double DecodeBench::replay(CUgraphExec graph, int launches) {
  SS_CUDA(*driver, cuEventRecord(begin, stream));
  for (int i = 0; i < launches; ++i)
    SS_CUDA(*driver, cuGraphLaunch(graph, stream));
  SS_CUDA(*driver, cuEventRecord(end, stream));
  SS_CUDA(*driver, cuEventSynchronize(end));
  float milliseconds = 0;
  SS_CUDA(*driver, cuEventElapsedTime(&milliseconds, begin, end));
  return milliseconds;
}

/// Rows and weights of the components, half a buffer of pairs, inputs, outputs
/// and the pair that is appended; keys once per key head.
double DecodeBench::bytesOfDecode(int32_t l) const {
  const LayerManifest &layer = package->manifest().layers[size_t(l)];
  const double states = double(batch) * layer.heads;
  const double groups = double(batch) * layer.keyHeads;
  const double decays = layer.channelDecay ? layer.dk : 1;
  double floats = states * (2.0 * layer.dv + decays + layer.hasBeta) +
                  groups * 2.0 * layer.dk;
  if (layer.denseForm)
    return 4 * (floats + states * 2.0 * layer.dv * layer.dk);
  const double pairs = (layer.buffer - 1) / 2;
  floats += states * (pairs + 1) * (layer.dv + decays) +
            groups * (pairs + 1) * layer.dk;
  const double components =
      std::accumulate(ranks[size_t(l)].begin(), ranks[size_t(l)].end(), 0.0);
  return 4 * (floats + components * (layer.dk + layer.dv + 1));
}

Measured DecodeBench::run() {
  const int32_t layers = int32_t(arrays.size());
  int32_t period = 1;
  double components = 0, states = 0;
  for (int32_t l = 0; l < layers; ++l) {
    period = std::max(period, package->manifest().layers[size_t(l)].buffer);
    states += double(ranks[size_t(l)].size());
    components +=
        std::accumulate(ranks[size_t(l)].begin(), ranks[size_t(l)].end(), 0.0);
  }
  Measured result;
  result.batch = batch;
  result.meanRank = states > 0 ? components / states : 0;
  const CUgraphExec step = capture(&DecodeBench::enqueueStep);
  const CUgraphExec decode = capture(&DecodeBench::enqueueDecode);
  // Two periods bring every buffer into its rhythm.
  (void)replay(step, 2 * period);
  std::vector<double> whole, single, alone;
  for (int32_t i = 0; i < options.repetitions; ++i) {
    restoreRanks();
    whole.push_back(replay(step, period) / period);
  }
  for (int32_t i = 0; i < options.repetitions; ++i) {
    restoreRanks();
    for (int32_t k = 0; k < period; ++k)
      single.push_back(replay(step, 1));
  }
  restoreRanks();
  ss_statistics statistics = {};
  engine->statistics(statistics);
  setCounts((period - 1) / 2);
  (void)replay(decode, period);
  for (int32_t i = 0; i < options.repetitions; ++i)
    alone.push_back(replay(decode, period) / period);
  const double perLayer = 1000.0 / layers;
  result.step = median(whole) * perLayer;
  result.decodeOnly = median(alone) * perLayer;
  std::sort(single.begin(), single.end());
  result.p99OverMedian =
      single[single.size() * 99 / 100] / single[single.size() / 2];
  for (int32_t l = 0; l < layers; ++l)
    result.decodeBytes += bytesOfDecode(l) / layers;
  result.liveBytes = double(statistics.live_bytes);
  result.denseBytes = double(statistics.dense_bytes);
  (void)driver->functions().cuGraphExecDestroy(step);
  (void)driver->functions().cuGraphExecDestroy(decode);
  return result;
}
