//===- DeviceTest.cpp - Compiled packages on a real GPU -------------------===//
//
// What the conformance suite cannot say: that graphs replay the bits of eager
// steps, that requests do not see their neighbours, and that large batches and
// large memories are addressed right. Results themselves are the conformance
// suite's; here the CPU's kernels of the same package are the measure.
//
//===----------------------------------------------------------------------===//

#include "GraphReplay.h"
#include "PackageModels.h"
#include "PackedCall.h"
#include "RequestDriver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace sinkstate;
using namespace sinkstate::reference;
using namespace sinkstate::test;

namespace {

struct Running {
  Running(const std::string &folder, const ss_engine_options &options)
      : layers(layersOf(folder)), package(Package::open(folder)),
        engine(package, options), driver(engine, layers, false) {}
  DrivenRequest request(uint64_t seed) {
    DrivenRequest request(layers, seed, ordinaryStyle());
    request.slot = engine.allocateSlot();
    return request;
  }
  std::vector<LayerSpec> layers;
  Package package;
  Engine engine;
  RequestDriver driver;
};

bool equalBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// |a - b| / |b| of one row.
double difference(const float *a, const float *b, int64_t count) {
  double squares = 0, scale = 0;
  for (int64_t i = 0; i < count; ++i) {
    squares += (a[i] - b[i]) * double(a[i] - b[i]);
    scale += double(b[i]) * b[i];
  }
  return std::isfinite(squares) ? std::sqrt(squares / std::max(scale, 1e-30))
                                : HUGE_VAL;
}

class Device : public OnGpu {};

TEST_P(Device, FollowsTheCpu) {
  ss_engine_options onCpu = engineOptions();
  onCpu.slots = 3;
  onCpu.dense_fallback = 0;
  onCpu.consolidate_every = 0;
  Running gpu(folder(), cudaOptions(3)), cpu(folder(), onCpu);
  std::vector<DrivenRequest> a, b;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    a.push_back(gpu.request(seed));
    b.push_back(cpu.request(seed));
  }
  for (int step = 0; step < 40; ++step) {
    auto rows = [&](std::vector<DrivenRequest> &r) {
      std::vector<DrivenRequest *> batch = {&r[0], nullptr, &r[2]};
      if (step >= 5)
        batch.push_back(&r[1]);
      return batch;
    };
    const StepResult onGpu = gpu.driver.step(rows(a));
    const StepResult expected = cpu.driver.step(rows(b));
    gpu.engine.synchronize();
    for (size_t l = 0; l < gpu.layers.size(); ++l) {
      const LayerSpec &layer = gpu.layers[l];
      // A component at the threshold may stay on one side only.
      const bool exact = layer.denseForm || step + 1 < layer.buffer;
      const double tolerance =
          exact || layer.policyKind != "relative"
              ? 1e-4
              : std::max(1e-3, 8 * layer.policyValue);
      const int64_t width = layer.valueFloats();
      for (size_t row = 0; row < rows(a).size(); ++row) {
        if (row == 1) { // padding
          for (int64_t i = 0; i < width; ++i)
            ASSERT_EQ(onGpu.y[l][size_t(row * width + i)], 0.0f);
          continue;
        }
        EXPECT_LE(difference(&onGpu.y[l][row * size_t(width)],
                             &expected.y[l][row * size_t(width)], width),
                  tolerance)
            << layer.name << ", step " << step << ", row " << row;
      }
    }
  }
  for (size_t l = 0; l < gpu.layers.size(); ++l)
    for (int32_t status : gpu.engine.status(int32_t(l), a[0].slot))
      EXPECT_EQ(status & ~SS_STATUS_TIGHTENED, 0);
}

TEST_P(Device, ReplaysTheBitsOfEagerSteps) {
  Running eager(folder(), cudaOptions(4)), replayed(folder(), cudaOptions(4));
  std::vector<DrivenRequest> a, b;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    a.push_back(eager.request(seed));
    b.push_back(replayed.request(seed));
  }
  GraphReplay graphs(replayed.driver);
  for (int step = 0; step < 40; ++step) {
    auto rows = [&](std::vector<DrivenRequest> &r) {
      if (step % 5 == 2)
        return std::vector<DrivenRequest *>{&r[3]};
      if (step % 5 == 4)
        return std::vector<DrivenRequest *>{&r[1], nullptr, &r[0]};
      return std::vector<DrivenRequest *>{&r[0], &r[1], &r[2]};
    };
    const StepResult first = eager.driver.step(rows(a));
    const StepResult second = replayed.driver.step(rows(b));
    for (size_t l = 0; l < first.y.size(); ++l)
      ASSERT_TRUE(equalBits(first.y[l], second.y[l]))
          << eager.layers[l].name << ", step " << step;
  }
  EXPECT_EQ(graphs.captured(), 2u);
  for (size_t l = 0; l < eager.layers.size(); ++l)
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(eager.engine.ranks(int32_t(l), a[i].slot),
                replayed.engine.ranks(int32_t(l), b[i].slot));
      EXPECT_TRUE(equalBits(eager.engine.densify(int32_t(l), a[i].slot),
                            replayed.engine.densify(int32_t(l), b[i].slot)));
    }
}

TEST_P(Device, GivesARequestTheSameBitsInAnyBatch) {
  Running alone(folder(), cudaOptions(1)), together(folder(), cudaOptions(9));
  DrivenRequest a = alone.request(77);
  std::vector<DrivenRequest> crowd;
  for (uint64_t seed = 1; seed < 9; ++seed)
    crowd.push_back(together.request(seed));
  DrivenRequest b = together.request(77);
  for (int step = 0; step < 24; ++step) {
    std::vector<DrivenRequest *> batch = {nullptr};
    for (DrivenRequest &request : crowd)
      batch.push_back(&request);
    batch.push_back(&b);
    const StepResult one = alone.driver.step({&a});
    const StepResult many = together.driver.step(batch);
    for (size_t l = 0; l < one.y.size(); ++l) {
      const size_t width = one.y[l].size();
      ASSERT_EQ(std::memcmp(one.y[l].data(),
                            many.y[l].data() + many.y[l].size() - width,
                            width * sizeof(float)),
                0)
          << alone.layers[l].name << ", step " << step;
    }
  }
}

TEST_P(Device, StaysWithinTheRowCapacity) {
  const std::vector<LayerSpec> layers = layersOf(folder());
  ss_engine_options options = cudaOptions(1);
  for (const LayerSpec &layer : layers)
    if (!layer.denseForm)
      options.row_capacity =
          std::max(options.row_capacity, layer.active + layer.buffer);
  Running run(folder(), options);
  DrivenRequest request(layers, 3); // all directions alike: rank grows
  request.slot = run.engine.allocateSlot();
  for (int step = 0; step < 32; ++step)
    run.driver.step({&request});
  for (size_t l = 0; l < layers.size(); ++l)
    if (!layers[l].denseForm)
      for (int32_t rank : run.engine.ranks(int32_t(l), request.slot))
        EXPECT_LE(rank, options.row_capacity - layers[l].buffer);
}

/// Inputs of one layer that are the same in every row.
struct UniformBatch {
  UniformBatch(Engine &engine, const LayerSpec &layer, int32_t batch,
               std::mt19937 &random)
      : q(engine, size_t(batch * layer.keyFloats())),
        k(engine, q.size()), v(engine, size_t(batch * layer.valueFloats())),
        gate(engine, size_t(batch * layer.gateFloats())),
        beta(engine, size_t(batch) * size_t(layer.heads)),
        y(engine, v.size()), batch(batch) {
    for (DeviceArray<float> *array : {&q, &k, &v, &gate, &beta})
      fill(*array, random);
  }
  void fill(DeviceArray<float> &array, std::mt19937 &random) const {
    std::normal_distribution<float> normal;
    const size_t width = array.size() / size_t(batch);
    std::vector<float> values(array.size());
    std::generate_n(values.begin(), width, [&] { return normal(random); });
    for (size_t i = width; i < values.size(); ++i)
      values[i] = values[i - width];
    array.copyIn(values);
  }
  DeviceArray<float> q, k, v, gate, beta, y;
  int32_t batch;
};

/// A step of a batch whose rows are all the same, layer by layer.
struct UniformStep {
  UniformStep(Engine &engine, const std::vector<LayerSpec> &layers,
              int32_t batch)
      : engine(engine), layers(layers), slots(engine, size_t(batch)), batch(batch) {
    std::vector<int32_t> list;
    for (int32_t row = 0; row < batch; ++row)
      list.push_back(engine.allocateSlot());
    slots.copyIn(list);
    first = list.front(), last = list.back();
    for (const LayerSpec &layer : layers) {
      inputs.emplace_back(engine, layer, batch, random);
      for (size_t size : {size_t(layer.heads), size_t(layer.gateFloats())}) {
        weights.emplace_back(engine, size);
        weights.back().copyIn(std::vector<float>(size, -1.0f));
      }
    }
  }
  void run() {
    engine.beginStep(slots.data(), batch);
    for (size_t l = 0; l < inputs.size(); ++l) {
      engine.decodeLayer(
          int32_t(l), reference::packedCall(layers[l], inputs[l], weights[2 * l].data(),
                                            weights[2 * l + 1].data(), slots.data(), batch));
    }
    engine.endStep(slots.data(), batch);
    for (UniformBatch &layer : inputs)
      layer.fill(layer.v, random);
  }
  Engine &engine;
  const std::vector<LayerSpec> &layers;
  DeviceArray<int32_t> slots;
  int32_t batch, first = -1, last = -1;
  std::mt19937 random{5};
  std::vector<UniformBatch> inputs;
  std::vector<DeviceArray<float>> weights;
};

TEST_P(Device, AddressesLargeBatchesAndMemories) {
  const std::vector<LayerSpec> layers = layersOf(folder());
  const auto factored =
      std::find_if(layers.begin(), layers.end(),
                   [](const LayerSpec &layer) { return !layer.denseForm; });
  if (factored == layers.end())
    GTEST_SKIP() << "no factored layer";
  // More than 65,535 blocks of 4 programs, and more than 2^31 floats.
  const int32_t batch = 4 * 66000 / factored->heads + 1;
  ss_engine_options options = cudaOptions(batch);
  options.row_capacity = 40;
  Package package = Package::open(folder());
  const ss_memory_plan plan = package.plan(options);
  if (plan.worst_case > int64_t(120) << 30)
    GTEST_SKIP() << plan.worst_case << " bytes, expected at most 120 GiB";
  Engine engine(package, options);
  UniformStep uniform(engine, layers, batch);
  for (int step = 0; step < factored->buffer + 2; ++step)
    uniform.run();
  engine.synchronize();
  for (size_t l = 0; l < layers.size(); ++l) {
    const std::vector<float> y = uniform.inputs[l].y.copyOut();
    const size_t width = size_t(layers[l].valueFloats());
    EXPECT_GT(std::abs(y[0]), 0.0f);
    for (size_t row = 1; row < size_t(batch); ++row)
      ASSERT_EQ(std::memcmp(&y[0], &y[row * width], width * sizeof(float)), 0)
          << layers[l].name << ", row " << row;
    EXPECT_TRUE(equalBits(engine.densify(int32_t(l), uniform.first),
                          engine.densify(int32_t(l), uniform.last)));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Device);
INSTANTIATE_TEST_SUITE_P(Packages, Device,
                         testing::ValuesIn(packageFolders()),
                         packageName);

} // namespace

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--package") == 0 && i + 1 < argc)
      packageFolders().push_back(argv[++i]);
  prepareMachine();
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  // What could not fail for want of a GPU has not passed either.
  constexpr int skipped = 77;
  return result == 0 && !gpuUnavailable().empty() ? skipped : result;
}
