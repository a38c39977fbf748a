//===- CudaBenchEngine.cpp - Steps as replayed graphs ---------------------===//

#include "CudaBenchEngine.h"

#include <algorithm>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;
using namespace ss_bench;

namespace {

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
  options.device_ordinal = bench.ordinal;
  options.dense_fallback = options.consolidate_every = -1;
  if (bench.rows == RowMemory::Fixed)
    options.row_capacity = rowCapacity(manifest, batch);
  options.consolidation =
      bench.consolidation.front() == Consolidation::Asynchronous
          ? SS_CONSOLIDATION_ASYNCHRONOUS
          : SS_CONSOLIDATION_OFF;
  options.compaction_streams = bench.compactionStreams;
  return resolveOptions(options);
}

class CudaMachine final : public BenchMachine {
public:
  explicit CudaMachine(int32_t device) : session(device) {}

  std::string description() const override { return session.description(); }
  MachineFacts facts() const override { return session.facts(); }
  double copyBandwidth(size_t bytes) override {
    return session.copyBandwidth(bytes);
  }
  bool measuresTogether() const override { return false; }
  std::unique_ptr<BenchEngine>
  makeEngine(std::shared_ptr<const Package> package,
             const BenchOptions &options, const RankProfile &profile,
             int32_t batch, int32_t period, const Shapes &shapes) override {
    return std::make_unique<CudaBenchEngine>(session, std::move(package),
                                             options, profile, batch, period,
                                             shapes);
  }

private:
  CudaSession session;
};

} // namespace

std::unique_ptr<BenchMachine> ss_bench::openCuda(int32_t device) {
  return std::make_unique<CudaMachine>(device);
}

CudaBenchEngine::CudaBenchEngine(CudaSession &session,
                                 std::shared_ptr<const Package> loaded,
                                 const BenchOptions &options,
                                 const RankProfile &profile, int32_t batch,
                                 int32_t period, const Shapes &shapes)
    : session(session), batch(batch), period(period), shapes(shapes),
      package(std::move(loaded)),
      states(std::make_unique<Engine>(
          package, engineOptions(options, package->manifest(), batch),
          session.sharedDriver())) {
  setMeanValues(*states, package->manifest(), shapes);
  std::vector<int32_t> list;
  for (int32_t row = 0; row < batch; ++row)
    list.push_back(states->allocateSlot(session.stream()));
  slots = static_cast<int32_t *>(session.allocate(list.size() * sizeof(int32_t)));
  session.upload(slots, list.data(), list.size() * sizeof(int32_t));
  for (const Shape &shape : shapes.all) {
    DeviceShape made;
    made.aLog = onDevice(shape.aLog);
    made.dtBias = onDevice(shape.dtBias);
    deviceShapes.push_back(made);
  }
  std::vector<SteadyState *> data;
  for (size_t l = 0; l < layers().size(); ++l) {
    const int64_t floats = batch * TokenSizes(layers()[l]).values;
    outputs.push_back(
        static_cast<float *>(session.allocate(size_t(floats) * sizeof(float))));
    data.push_back(shapes.of(l).data.get());
  }
  saved = std::make_unique<EngineStates>(session, *states, package->manifest(),
                                         batch, profile, options.order, data);
}

CudaBenchEngine::~CudaBenchEngine() {
  freeGraphs();
  freeInputs();
  for (const DeviceShape &shape : deviceShapes) {
    session.free(shape.aLog);
    session.free(shape.dtBias);
  }
  for (float *output : outputs)
    session.free(output);
  session.free(slots);
}

const std::vector<LayerManifest> &CudaBenchEngine::layers() const {
  return package->manifest().layers;
}

float *CudaBenchEngine::onDevice(const std::vector<float> &values) {
  void *memory = session.allocate(values.size() * sizeof(float));
  session.upload(memory, values.data(), values.size() * sizeof(float));
  return static_cast<float *>(memory);
}

/// [sets, distinct, ...] on the host as [sets, batch, ...] on the device.
float *CudaBenchEngine::batchOf(const std::vector<float> &values,
                                int32_t distinct) {
  const size_t from = values.size() / size_t(period);
  const size_t to = from / size_t(distinct) * size_t(batch);
  auto *memory = static_cast<float *>(
      session.allocate(to * size_t(period) * sizeof(float)));
  for (size_t set = 0; set < size_t(period); ++set) {
    session.upload(memory + set * to, &values[set * from], from * sizeof(float));
    session.repeat(memory + set * to, from * sizeof(float), to * sizeof(float));
  }
  return memory;
}

void CudaBenchEngine::useInputs() {
  freeInputs();
  for (size_t i = 0; i < deviceShapes.size(); ++i) {
    const StepInputs &host = shapes.all[i].inputs;
    DeviceShape &shape = deviceShapes[i];
    shape.q = batchOf(host.q, host.requests);
    shape.k = batchOf(host.k, host.requests);
    shape.v = batchOf(host.v, host.requests);
    shape.gate = batchOf(host.gate, host.requests);
    shape.beta = batchOf(host.beta, host.requests);
  }
  makeGraphs();
}

void CudaBenchEngine::freeInputs() {
  for (DeviceShape &shape : deviceShapes)
    for (float **array :
         {&shape.q, &shape.k, &shape.v, &shape.gate, &shape.beta}) {
      session.free(*array);
      *array = nullptr;
    }
}

void CudaBenchEngine::setStaggered(bool staggered, bool decoding) {
  saved->setStaggered(staggered, decoding, period);
}

ss_decode_args CudaBenchEngine::argsOf(size_t l, int32_t set) const {
  const TokenSizes sizes(layers()[l]);
  const DeviceShape &shape = deviceShapes[shapes.ofLayer[l]];
  const int64_t token = int64_t(set) * batch;
  ss_decode_args args = {};
  args.struct_size = sizeof args;
  args.batch = batch;
  args.slots = slots;
  args.q = {shape.q + token * sizes.keys, 0};
  args.k = {shape.k + token * sizes.keys, 0};
  args.v = {shape.v + token * sizes.values, 0};
  args.gate = {shape.gate + token * sizes.gates, 0};
  args.beta = {shape.beta + token * sizes.betas, 0};
  args.a_log = shape.aLog;
  args.dt_bias = shape.dtBias;
  args.y = outputs[l];
  args.stream = session.stream();
  return args;
}

void CudaBenchEngine::enqueueStep(int32_t set) {
  const std::span<const int32_t> list(slots, size_t(batch));
  states->beginStep(list, session.stream());
  for (size_t l = 0; l < layers().size(); ++l)
    states->decodeLayer(int32_t(l), argsOf(l, set));
  states->endStep(list, session.stream());
}

void CudaBenchEngine::enqueueDecode(int32_t set) {
  std::vector<ss_decode_args> args;
  for (size_t l = 0; l < layers().size(); ++l)
    args.push_back(argsOf(l, set));
  states->launchDecodes({slots, size_t(batch)}, args, session.stream());
}

/// And the memory that the steps from there on may take.
void CudaBenchEngine::restore() {
  saved->restore();
  states->reportRoom(session.stream());
  states->tend(session.stream());
}

/// One by one: the host has to see what a step took to have enough for those
/// that it will queue together.
void CudaBenchEngine::warmUp(int32_t) {
  for (int32_t round = 0; round < 2; ++round)
    for (const CudaSession::Graph &step : steps) {
      states->tend(session.stream());
      (void)session.replay({&step, 1});
    }
}

std::vector<double> CudaBenchEngine::serve(int32_t count, int32_t period) {
  std::vector<CudaSession::Graph> graphs;
  for (int32_t step = 0; step < count; ++step)
    graphs.push_back(steps[size_t(step % period)]);
  return session.replay(graphs, [&] { states->tend(session.stream()); });
}

void CudaBenchEngine::makeGraphs() {
  freeGraphs();
  for (int32_t set = 0; set < period; ++set) {
    steps.push_back(session.capture([&] { enqueueStep(set); }));
    decodes.push_back(session.capture([&] { enqueueDecode(set); }));
  }
}

void CudaBenchEngine::freeGraphs() {
  for (auto *graphs : {&steps, &decodes}) {
    for (CudaSession::Graph graph : *graphs)
      session.destroy(graph);
    graphs->clear();
  }
}

std::vector<double> CudaBenchEngine::runSteps(int32_t first, int32_t count) {
  return session.replay({&steps[size_t(first)], size_t(count)});
}

std::vector<double> CudaBenchEngine::runDecodes() {
  return session.replay(decodes);
}

void CudaBenchEngine::output(size_t layer, int32_t slot, float *y) {
  const size_t width = size_t(TokenSizes(layers()[layer]).values);
  session.download(y, outputs[layer] + size_t(slot) * width,
                   width * sizeof(float));
}
