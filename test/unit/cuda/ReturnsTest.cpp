//===- ReturnsTest.cpp - Dense states that come back on the fake GPU ------===//
//
// Matrices whose ranks fell are factors again, whatever else tries in the same
// step: an init kernel runs as many programs as its grid has, or all where it loops.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"

#include "consolidation/ExactSvd.h"
#include "hash/Sha256.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Layers of two row widths, one of them shared, and one of dense form; one
/// compacts before its tokens.
std::vector<LayerSpec> returningLayers() {
  std::vector<LayerSpec> layers = fourLayers(1e-2);
  layers[2].before = true;
  return layers;
}

/// Full rank up to a token, then less, the more so the stronger the decay is.
RequestStyle rankFallsAt(int64_t token, float gate) {
  RequestStyle style;
  style.adjust = [token, gate](int64_t position, TokenValues &values) {
    for (float &each : values.gate)
      each += position < token ? -40.0f : gate;
  };
  return style;
}

class CudaReturns : public OnFakeGpu {
protected:
  static DrivenRequest request(CudaUnderTest &cuda, const FakePackage &source,
                               uint64_t seed, int64_t fallsAt = 60, float gate = 14) {
    DrivenRequest request(source.layers(), seed, rankFallsAt(fallsAt, gate));
    request.slot = cuda.engine.allocateSlot();
    return request;
  }
};

/// Adds init kernels to a package: exact SVDs on the host.
class InitKernels {
public:
  explicit InitKernels(FakePackage &source, bool loops = true) : loops(loops) {
    nlohmann::json json = nlohmann::json::parse(source.manifest);
    for (nlohmann::json &layer : json["layers"])
      if (layer["form"] == "factored")
        add(source, json, layer);
    source.manifest = json.dump(2);
    source.write();
  }
  int32_t found = 0, most = 0; ///< matrices: of all launches, and of one

private:
  struct Entry {
    InitKernels *owner;
    int32_t dk, dv;
  };
  static constexpr const char *kArguments[][2] = {
      {"factors", "f32*"},    {"weights", "f32*"},    {"row_base", "i64*"},
      {"rank", "i32*"},       {"status", "i32*"},     {"work", "i32*"},
      {"work_count", "i32*"}, {"matrices", "f32*"},   {"matrix_base", "i64*"},
      {"policy_value", "f32"}, {"max_rank", "i32"},   {"seed", "i64"}};

  void add(FakePackage &source, nlohmann::json &json, nlohmann::json &layer) {
    const std::string name = layer["name"].get<std::string>() + "_init";
    nlohmann::json args = nlohmann::json::array();
    std::vector<size_t> sizes;
    for (const auto &[argument, type] : kArguments) {
      args.push_back({{"name", argument}, {"type", type}});
      const std::string_view name = type;
      sizes.push_back(name == "f32" || name == "i32" ? 4 : 8);
    }
    sizes.push_back(sizeof(int64_t));
    json["kernels"].push_back({{"name", name},
                               {"role", "init"},
                               {"programs_per_block", 1},
                               {"loops", loops},
                               {"args", args}});
    layer["kernels"]["init"] = name;
    const std::string text = "// " + name + "\n";
    source.writeFile("cuda/" + name + ".cu", text);
    json["cuda"].push_back({{"kernel", name},
                            {"file", "cuda/" + name + ".cu"},
                            {"sha256", sha256Hex(text)}});
    entries.push_back({this, layer["dk"], layer["dv"]});
    fake_add_kernel(name.c_str(), sizes.data(), sizes.size(), run,
                    &entries.back());
  }

  static void run(void *context, void *const *parameters, unsigned blocks) {
    const Entry &entry = *static_cast<const Entry *>(context);
    auto pointer = [&]<typename T>(int i, T *) {
      return *static_cast<T **>(parameters[i]);
    };
    float *f = nullptr;
    int32_t *n = nullptr;
    int64_t *l = nullptr;
    const int64_t width = entry.dk + entry.dv;
    const int32_t most = *static_cast<int32_t *>(parameters[10]);
    int32_t programs = *pointer(6, n);
    if (!entry.owner->loops)
      programs = std::min(programs, int32_t(blocks));
    for (int32_t p = 0; p < programs; ++p) {
      const int32_t state = pointer(5, n)[p];
      const float *matrix = pointer(7, f) + pointer(8, l)[p];
      std::vector<float> copy(matrix, matrix + entry.dk * entry.dv);
      const auto all = size_t(std::min(entry.dk, entry.dv));
      std::vector<float> rows(all * size_t(width)), weights(all);
      consolidation::Truncation truncation;
      truncation.eps = *static_cast<float *>(parameters[9]);
      const auto result = consolidation::factorize(
          copy.data(), entry.dk, entry.dv, truncation, rows.data(),
          weights.data());
      const int32_t rank = std::min(most, result.rank);
      const int64_t base = pointer(2, l)[state];
      std::copy_n(rows.data(), rank * width, pointer(0, f) + base * width);
      std::copy_n(weights.data(), rank, pointer(1, f) + base);
      pointer(3, n)[state] = rank;
      pointer(4, n)[state] = 0;
      ++entry.owner->found;
    }
    entry.owner->most = std::max(entry.owner->most, programs);
  }
  bool loops;
  std::deque<Entry> entries;
};

TEST_F(CudaReturns, TakeStatesWhoseRanksFell) {
  FakePackage truncated(returningLayers());
  InitKernels init(truncated);
  CudaUnderTest cuda(truncated, cudaOptions(2));
  DrivenRequest a = request(cuda, truncated, 1),
                b = request(cuda, truncated, 2);
  GraphReplay replay(cuda.driver);
  for (int step = 0; step < 60; ++step) {
    cuda.engine.tend();
    cuda.driver.step({&a, &b});
  }
  ASSERT_GT(cuda.engine.statistics().went_dense, 0)
      << testing::PrintToString(cuda.engine.ranks(0, a.slot))
      << testing::PrintToString(cuda.engine.ranks(2, a.slot));
  for (int step = 0; step < 200; ++step) {
    cuda.engine.tend();
    cuda.driver.step({&a, &b});
  }
  const ss_statistics found = cuda.engine.statistics();
  EXPECT_GT(init.found, 0);
  EXPECT_EQ(found.went_factored, found.went_dense);
  for (int32_t layer = 0; layer < 3; ++layer) {
    for (int32_t rank : cuda.engine.ranks(layer, a.slot))
      EXPECT_GE(rank, 0);
    // What was dropped is at most a hundredth at a time.
    EXPECT_LE(cuda.driver.stateError(a, size_t(layer)), 0.05);
    const ss_layer_statistics now = cuda.engine.layerStatistics(layer);
    EXPECT_EQ(now.dense_states, 0) << layer;
    EXPECT_EQ(now.status, 0);
    EXPECT_GT(now.rank_sum, 0) << layer;
  }
  cuda.engine.synchronize();
}

// A step that is begun and given up has folded nothing: the next attempt at factors
// is as many folds away as before.
TEST_F(CudaReturns, AreAsFarAwayAfterStepsThatAreGivenUp) {
  FakePackage truncated(returningLayers());
  InitKernels init(truncated);
  CudaUnderTest once(truncated, cudaOptions(1), false),
      again(truncated, cudaOptions(1), false);
  DrivenRequest a = request(once, truncated, 1),
                b = request(again, truncated, 1);
  DeviceArray<int32_t> slots(again.engine, 1);
  slots.copyIn({b.slot});
  again.driver.setSubmit([&](size_t batch) {
    for (int given = 0; given < 2; ++given)
      again.engine.beginStep(slots.data(), 1);
    again.driver.enqueue(batch, nullptr);
  });
  for (int step = 0; step < 260; ++step) {
    once.driver.step({&a});
    again.driver.step({&b});
    const ss_statistics x = once.engine.statistics(),
                        y = again.engine.statistics();
    ASSERT_EQ(x.folds, y.folds) << step;
    ASSERT_EQ(x.went_dense, y.went_dense) << step;
    ASSERT_EQ(x.went_factored, y.went_factored) << step;
    ASSERT_EQ(x.compactions, y.compactions) << step;
    ASSERT_EQ(x.used_bytes, y.used_bytes) << step;
  }
  EXPECT_GT(again.engine.statistics().went_factored, 0);
}

// What did not become less tries again after twice as many folds each time.
TEST_F(CudaReturns, AreTriedEverRarer) {
  LayerSpec layer = mamba2Layer(1, 1, 16, 16);
  layer.policyValue = 1e-2;
  FakePackage truncated({layer});
  InitKernels init(truncated);
  CudaUnderTest cuda(truncated, cudaOptions(1));
  DrivenRequest full = request(cuda, truncated, 1, INT64_MAX);
  std::vector<int64_t> attempts;
  int32_t before = 0;
  while (cuda.engine.statistics().folds < 140) {
    cuda.driver.step({&full});
    if (std::exchange(before, init.found) != init.found)
      attempts.push_back(cuda.engine.statistics().folds);
  }
  EXPECT_EQ(attempts, (std::vector<int64_t>{16, 32, 64, 128}));
  EXPECT_EQ(cuda.engine.statistics().went_factored, 0);
}

// They have streams of their own, where there may be any.
TEST_F(CudaReturns, TakeStreamsWhereThereMayBeAny) {
  FakePackage without(returningLayers()), with(returningLayers());
  InitKernels init(with);
  auto streamsOf = [](FakePackage &source) {
    const int before = fake_calls("cuStreamCreateWithPriority");
    CudaUnderTest cuda(source, cudaOptions(1), false);
    return fake_calls("cuStreamCreateWithPriority") - before;
  };
  EXPECT_EQ(streamsOf(with), streamsOf(without) + 8);
}

// As many states as there are try in the same step, many more than the GPU has
// multiprocessors: each becomes what it does alone.
class ManyReturns : public CudaReturns, public testing::WithParamInterface<bool> {
protected:
  static constexpr size_t kRequests = 24;
  static constexpr int kSteps = 260;

  /// Ranks fall, and what a state was is still to be seen some tokens later.
  static DrivenRequest request(CudaUnderTest &cuda, const FakePackage &source, uint64_t seed) {
    return CudaReturns::request(cuda, source, seed, 60, 1.0f);
  }
  /// Row `row` of `all` is what `alone` is, to the bit.
  static void expectRow(const StepResult &all, size_t row, const StepResult &alone) {
    for (size_t layer = 0; layer < alone.y.size(); ++layer) {
      const std::vector<float> &own = alone.y[layer];
      ASSERT_EQ(all.y[layer].size(), kRequests * own.size());
      ASSERT_EQ(std::memcmp(all.y[layer].data() + row * own.size(), own.data(),
                            own.size() * sizeof(float)),
                0)
          << "layer " << layer;
    }
  }
};

TEST_P(ManyReturns, OfAStepAreThoseOfEachAlone) {
  FakePackage truncated(returningLayers());
  InitKernels init(truncated, GetParam());
  CudaUnderTest all(truncated, cudaOptions(kRequests), false),
      alone(truncated, cudaOptions(1), false);
  std::vector<DrivenRequest> together;
  std::vector<DrivenRequest *> batch;
  for (uint64_t seed = 0; seed < kRequests; ++seed)
    together.push_back(request(all, truncated, seed));
  for (DrivenRequest &each : together)
    batch.push_back(&each);
  std::vector<StepResult> results;
  fake_watch("layer0_init");
  for (int step = 0; step < kSteps; ++step)
    results.push_back(all.driver.step(batch));
  EXPECT_GT(init.most, 12) << "as many blocks as the GPU holds did it";
  // Few where they go on to further states, since there are hardly ever any.
  const auto heads = unsigned(truncated.layers()[0].heads);
  EXPECT_EQ(fake_watched_blocks(), GetParam() ? 32u : kRequests * heads);
  const ss_statistics found = all.engine.statistics();
  for (size_t i = 0; i < kRequests && !HasFatalFailure(); ++i) {
    DrivenRequest single = request(alone, truncated, i);
    for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) {
      SCOPED_TRACE("request " + std::to_string(i) + ", step " + std::to_string(step));
      expectRow(results[size_t(step)], i, alone.driver.step({&single}));
    }
    for (int32_t layer = 0; layer < 3; ++layer)
      EXPECT_EQ(all.engine.ranks(layer, together[i].slot),
                alone.engine.ranks(layer, single.slot));
    alone.engine.freeSlot(single.slot);
  }
  EXPECT_GT(found.went_factored, 0);
  EXPECT_EQ(alone.engine.statistics().went_factored, found.went_factored);
  all.engine.synchronize();
}

INSTANTIATE_TEST_SUITE_P(Kernels, ManyReturns, testing::Bool(), [](const auto &loops) {
  return loops.param ? "ThatLoop" : "OfAProgramABlock";
});

} // namespace
