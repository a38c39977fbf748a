//===- CpuBenchEngine.cpp - Steps on the processor ------------------------===//

#include "CpuBenchEngine.h"

#include "capi/Failure.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>

using namespace sinkstate::runtime;
using namespace ss_bench;

namespace {

/// Rows are made for as many requests as fit, at least one, and repeated.
constexpr int64_t kPatternFloats = int64_t(1) << 22;
/// Components that a matrix of a dense state is made of.
constexpr int64_t kMatrixRank = 8;

class Clock {
public:
  explicit Clock(bool processorTime)
      : id(processorTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC),
        begin(now()) {}
  double milliseconds() const { return now() - begin; }

private:
  double now() const {
    timespec time = {};
    (void)clock_gettime(id, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
  }

  clockid_t id;
  double begin;
};

ss_engine_options engineOptions(const BenchOptions &bench, int32_t batch) {
  ss_engine_options options = {};
  options.struct_size = sizeof options;
  options.slots = batch;
  options.threads = bench.threads;
  options.device = SS_DEVICE_CPU;
  options.dense_fallback = 1;
  options.consolidate_every = 0;
  options.consolidation = SS_CONSOLIDATION_OFF;
  return resolveOptions(options);
}

/// "AMD EPYC 9000"; empty where the system does not say.
std::string processorName() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line))
    if (line.starts_with("model name")) {
      const size_t colon = line.find(": ");
      return colon == std::string::npos ? "" : line.substr(colon + 2);
    }
  return "";
}

class CpuMachine final : public BenchMachine {
public:
  CpuMachine(int32_t threads, bool processorTime)
      : threads(threads > 0 ? threads : omp_get_num_procs()),
        processorTime(processorTime) {}

  std::string description() const override {
    const std::string name = processorName();
    return (name.empty() ? "a CPU" : name) + ", " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads") +
           (processorTime ? " (times are the processor's)" : "");
  }
  MachineFacts facts() const override { return {processorName(), "", ""}; }
  double copyBandwidth(size_t bytes) override;
  bool measuresTogether() const override { return true; }
  std::unique_ptr<BenchEngine>
  makeEngine(std::shared_ptr<const Package> package,
             const BenchOptions &options, const RankProfile &profile,
             int32_t batch, int32_t period, const Shapes &shapes) override {
    package->requireCpuCode();
    return std::make_unique<CpuBenchEngine>(std::move(package), options,
                                            profile, batch, period, shapes);
  }

private:
  int32_t threads;
  bool processorTime;
};

double CpuMachine::copyBandwidth(size_t bytes) {
  constexpr int kCopies = 10;
  const size_t part = bytes / size_t(threads);
  std::vector<char> from(part * size_t(threads), 0x5a), to(from.size());
  std::vector<double> times;
  for (int i = 0; i <= kCopies; ++i) {
    const Clock clock(processorTime);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int32_t thread = 0; thread < threads; ++thread)
      std::memcpy(&to[size_t(thread) * part], &from[size_t(thread) * part],
                  part);
    if (i > 0) // the first one finds the pages
      times.push_back(clock.milliseconds());
  }
  std::nth_element(times.begin(), times.begin() + kCopies / 2, times.end());
  return 2.0 * double(from.size()) / (times[kCopies / 2] * 1e-3);
}

} // namespace

std::unique_ptr<BenchMachine> ss_bench::openCpu(int32_t threads,
                                              bool processorTime) {
  return std::make_unique<CpuMachine>(threads, processorTime);
}

CpuBenchEngine::CpuBenchEngine(std::shared_ptr<const Package> loaded,
                               const BenchOptions &options,
                               const RankProfile &profile, int32_t batch,
                               int32_t period, const Shapes &shapes)
    : batch(batch), period(period), processorTime(options.processorTime),
      shapes(shapes), package(std::move(loaded)),
      states(std::make_unique<Engine>(package, engineOptions(options, batch))),
      ranks(package->manifest().layers.size()), inputs(shapes.all.size()) {
  setMeanValues(*states, package->manifest(), shapes);
  for (int32_t row = 0; row < batch; ++row)
    slots.push_back(states->allocateSlot(nullptr));
  for (const LayerManifest &layer : layers())
    outputs.emplace_back(size_t(batch * TokenSizes(layer).values));
  drawRanks(profile, options.order);
}

const std::vector<LayerManifest> &CpuBenchEngine::layers() const {
  return package->manifest().layers;
}

void CpuBenchEngine::drawRanks(const RankProfile &profile, RankOrder order) {
  std::mt19937_64 random(2);
  for (size_t l = 0; l < layers().size(); ++l) {
    const LayerManifest &layer = layers()[l];
    if (layer.denseForm)
      continue;
    const LayerLayout &layout = states->layerState(int32_t(l)).layout();
    // A larger one would go dense at once, or pass the layer's bound.
    const int64_t bound = layer.rank - layer.buffer - layer.draft;
    const auto most = int32_t(
        layout.denseFallback ? std::min(bound, layout.breakEvenRank - 1)
                             : bound);
    for (int64_t state = 0; state < layout.states; ++state) {
      const int32_t rank = profile.draw(random, most, layer.type);
      ranks[l].push_back(rank < 0 && !layout.denseFallback ? most : rank);
    }
    sortRanks(ranks[l], order);
  }
}

const CpuBenchEngine::Pattern &CpuBenchEngine::patternOf(size_t l) {
  const LayerManifest &layer = layers()[l];
  const int64_t capacity = std::max<int64_t>(
      kMatrixRank, *std::max_element(ranks[l].begin(), ranks[l].end()));
  Pattern &pattern = patterns[{shapes.ofLayer[l], capacity}];
  if (pattern.requests > 0)
    return pattern;
  const int64_t width = layer.dk + layer.dv;
  const int64_t floats = layer.heads * capacity * width;
  pattern.capacity = capacity;
  pattern.requests =
      int32_t(std::clamp<int64_t>(kPatternFloats / floats, 1, batch));
  pattern.rows = shapes.of(l).data->rows(pattern.requests, capacity);
  // Row c of a dense state is column c of H.
  const int64_t size = int64_t(layer.dk) * layer.dv;
  pattern.matrices.resize(size_t(pattern.requests * layer.heads * size));
  for (int64_t state = 0; state < pattern.requests * layer.heads; ++state)
    for (int64_t i = 0; i < kMatrixRank; ++i) {
      const float *row = &pattern.rows[size_t((state * capacity + i) * width)];
      float *h = &pattern.matrices[size_t(state * size)];
      for (int64_t c = 0; c < layer.dk; ++c)
        for (int64_t r = 0; r < layer.dv; ++r)
          h[c * layer.dv + r] += row[c] * row[layer.dk + r];
    }
  return pattern;
}

/// [sets, distinct, ...] as [sets, batch, ...].
std::vector<float> CpuBenchEngine::batchOf(const std::vector<float> &values,
                                           int32_t distinct) const {
  const size_t token = values.size() / size_t(period) / size_t(distinct);
  std::vector<float> all;
  all.reserve(token * size_t(period) * size_t(batch));
  for (size_t set = 0; set < size_t(period); ++set)
    for (size_t row = 0; row < size_t(batch); ++row) {
      const float *from =
          &values[(set * size_t(distinct) + row % size_t(distinct)) * token];
      all.insert(all.end(), from, from + token);
    }
  return all;
}

void CpuBenchEngine::useInputs() {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const StepInputs &host = shapes.all[i].inputs;
    inputs[i] = {batchOf(host.q, host.requests), batchOf(host.k, host.requests),
                 batchOf(host.v, host.requests),
                 batchOf(host.gate, host.requests),
                 batchOf(host.beta, host.requests)};
  }
}

void CpuBenchEngine::setStaggered(bool staggered, bool isDecoding) {
  decoding = isDecoding;
  positions.clear();
  for (int32_t slot = 0; slot < batch; ++slot)
    positions.push_back(startingPosition(slot, staggered, period));
}

int32_t CpuBenchEngine::countOf(size_t layer, int32_t slot) const {
  return ranks[layer].empty() ? 0 : pairsOf(layer, slot);
}

int32_t CpuBenchEngine::pairsOf(size_t layer, int32_t slot) const {
  const int64_t position = positions[size_t(slot)];
  return decoding ? decodingCount(layers()[layer], position)
                  : startingCount(layers()[layer], position);
}

void CpuBenchEngine::restoreState(size_t l, int64_t state,
                                  const Pattern &pattern) {
  LayerState &layer = states->layerState(int32_t(l));
  const int32_t rank = ranks[l][size_t(state)];
  const int64_t rows = rank < 0 ? layer.layout().denseRows : rank;
  // Blocks stay where they serve: growing them is not a step's work.
  if (layer.isDense(state) != (rank < 0))
    layer.replaceBlock(state, layer.pool().allocate(rows));
  layer.rank[state] = 0; // nothing to keep
  layer.ensureRows(state, rows);
  layer.rank[state] = rank;
  layer.status[state] = 0;
  // No attempt to return to factors: that is consolidation, once in many folds.
  layer.folds[size_t(state)] = 0;
  const int64_t from = state % (pattern.requests * layer.heads());
  if (rank < 0) {
    const int64_t floats = layer.layout().denseFloats;
    layer.writeRows(state, &pattern.matrices[size_t(from * floats)], floats);
    return;
  }
  const int64_t width = layer.layout().rowFloats;
  layer.writeRows(state, &pattern.rows[size_t(from * pattern.capacity * width)],
                  rank * width);
  shapes.of(l).data->weights(rank, layer.weightsOf(state));
}

void CpuBenchEngine::restore() {
  for (size_t l = 0; l < layers().size(); ++l) {
    if (!layers()[l].hasBuffer())
      continue;
    LayerState &layer = states->layerState(int32_t(l));
    if (!ranks[l].empty()) {
      const Pattern &pattern = patternOf(l);
      for (int64_t state = 0; state < layer.layout().states; ++state)
        restoreState(l, state, pattern);
    }
    for (int32_t slot : slots) {
      layer.count[slot] = pairsOf(l, slot);
      layer.noteChange(slot);
    }
  }
  for (int32_t slot : slots)
    states->setPosition(slot, positions[size_t(slot)], nullptr);
}

ss_decode_args CpuBenchEngine::argsOf(size_t l, int32_t set) {
  const TokenSizes sizes(layers()[l]);
  const BatchInputs &from = inputs[shapes.ofLayer[l]];
  const Shape &shape = shapes.of(l);
  const int64_t token = int64_t(set) * batch;
  ss_decode_args args = {};
  args.struct_size = sizeof args;
  args.batch = batch;
  args.slots = slots.data();
  args.q = {from.q.data() + token * sizes.keys, 0};
  args.k = {from.k.data() + token * sizes.keys, 0};
  args.v = {from.v.data() + token * sizes.values, 0};
  args.gate = {from.gate.data() + token * sizes.gates, 0};
  args.beta = {from.beta.data() + token * sizes.betas, 0};
  args.a_log = shape.aLog.data();
  args.dt_bias = shape.dtBias.data();
  args.y = outputs[l].data();
  return args;
}

std::vector<double> CpuBenchEngine::runSteps(int32_t first, int32_t count) {
  std::vector<double> times;
  for (int32_t set = first; set < first + count; ++set) {
    const Clock clock(processorTime);
    states->beginStep(slots, nullptr);
    for (size_t l = 0; l < layers().size(); ++l)
      states->decodeLayer(int32_t(l), argsOf(l, set));
    states->endStep(slots, nullptr);
    times.push_back(clock.milliseconds());
  }
  return times;
}

std::vector<double> CpuBenchEngine::runDecodes() {
  std::vector<double> times;
  for (int32_t set = 0; set < period; ++set) {
    const Clock clock(processorTime);
    for (size_t l = 0; l < layers().size(); ++l)
      states->launchDecode(int32_t(l), argsOf(l, set));
    times.push_back(clock.milliseconds());
  }
  return times;
}

std::vector<int32_t> CpuBenchEngine::ranksNow(size_t l) {
  const LayerState &layer = states->layerState(int32_t(l));
  return {layer.rank.data(), layer.rank.data() + ranks[l].size()};
}

void CpuBenchEngine::output(size_t layer, int32_t slot, float *y) {
  const auto width = size_t(TokenSizes(layers()[layer]).values);
  std::copy_n(&outputs[layer][size_t(slot) * width], width, y);
}
