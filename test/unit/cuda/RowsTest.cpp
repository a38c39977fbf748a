//===- RowsTest.cpp - Rows of states in pools on the fake GPU -------------===//
//
// Pools decide where rows are and nothing else: an engine whose states have all
// rows from the beginning gives the same bits. Memory that is not mapped cannot
// be touched on the fake GPU.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Layers of two row widths, one of them shared, and one of dense form; one
/// compacts before its tokens.
std::vector<LayerSpec> pooledLayers(double eps = 1e-2) {
  std::vector<LayerSpec> layers = fourLayers(eps);
  layers[2].before = true;
  return layers;
}

/// Strong and weak decays in turn: ranks rise and fall.
RequestStyle breathing() {
  RequestStyle style;
  style.rank = 9;
  style.adjust = [](int64_t position, TokenValues &token) {
    for (float &gate : token.gate)
      gate += position / 40 % 2 ? 3.0f : -4.0f;
  };
  return style;
}

class CudaRows : public OnFakeGpu {
protected:
  FakePackage source{pooledLayers()};

  static ss_engine_options pooled(int32_t slots) {
    ss_engine_options options = cudaOptions(slots);
    options.dense_fallback = 0;
    return options;
  }
  static ss_engine_options fixed(int32_t slots) {
    ss_engine_options options = cudaOptions(slots);
    options.row_capacity = 1000; // every layer's bound
    return options;
  }
  /// A share of what `slots` requests hold at most, beside tables and buffers.
  int64_t limitFor(ss_engine_options options, double share) {
    CudaUnderTest probe(source, options, false);
    const int64_t tables = probe.engine.statistics().allocated_bytes;
    std::vector<DrivenRequest> requests = requestsOf(probe, options.slots);
    for (int step = 0; step < 160; ++step)
      probe.driver.step(batchOf(requests));
    return tables + int64_t(share * double(probe.engine.statistics()
                                               .allocated_peak -
                                           tables));
  }
  std::vector<DrivenRequest> requestsOf(CudaUnderTest &cuda, int32_t count) {
    std::vector<DrivenRequest> requests;
    for (int32_t i = 0; i < count; ++i)
      requests.push_back(request(cuda, source, uint64_t(i), breathing()));
    return requests;
  }
  static std::vector<DrivenRequest *>
  batchOf(std::vector<DrivenRequest> &requests) {
    std::vector<DrivenRequest *> batch;
    for (DrivenRequest &each : requests)
      batch.push_back(&each);
    return batch;
  }
  static DrivenRequest request(CudaUnderTest &cuda, const FakePackage &source,
                               uint64_t seed, RequestStyle style) {
    DrivenRequest request(source.layers(), seed, std::move(style));
    request.slot = cuda.engine.allocateSlot();
    return request;
  }
};

void expectEqual(CudaUnderTest &a, int32_t slotA, CudaUnderTest &b,
                 int32_t slotB, size_t layers) {
  for (size_t layer = 0; layer < layers; ++layer) {
    const int32_t l = int32_t(layer);
    EXPECT_EQ(a.engine.ranks(l, slotA), b.engine.ranks(l, slotB));
    EXPECT_EQ(a.engine.status(l, slotA), b.engine.status(l, slotB));
    const std::vector<float> h = a.engine.densify(l, slotA),
                             g = b.engine.densify(l, slotB);
    ASSERT_EQ(h.size(), g.size());
    EXPECT_EQ(std::memcmp(h.data(), g.data(), h.size() * sizeof(float)), 0);
  }
}

/// Requests that come, pause and go, the same in both engines, and so many rows
/// of padding.
template <typename Tend>
void expectBitsOfFixedRows(FakePackage &source, CudaUnderTest &pools,
                           CudaUnderTest &rows, int steps, const Tend &tend,
                           size_t padding = 1) {
  std::mt19937 random(3);
  std::vector<DrivenRequest> a, b;
  uint64_t seed = 0;
  auto join = [&] {
    for (auto [cuda, requests] : {std::pair{&pools, &a}, {&rows, &b}}) {
      DrivenRequest joined(source.layers(), seed, breathing());
      joined.slot = cuda->engine.allocateSlot();
      requests->push_back(std::move(joined));
    }
    ++seed;
  };
  for (int step = 0; step < steps; ++step) {
    if (a.size() < 5 && random() % 8 == 0)
      join();
    if (a.size() == 5 && random() % 16 == 0) {
      expectEqual(pools, a[2].slot, rows, b[2].slot, source.layers().size());
      pools.engine.freeSlot(a[2].slot);
      rows.engine.freeSlot(b[2].slot);
      a.erase(a.begin() + 2);
      b.erase(b.begin() + 2);
    }
    std::vector<DrivenRequest *> batchA(padding), batchB(padding);
    for (size_t i = 0; i < a.size(); ++i)
      if (random() % 5 != 0) {
        batchA.push_back(&a[i]);
        batchB.push_back(&b[i]);
      }
    tend();
    const StepResult x = pools.driver.step(batchA), y = rows.driver.step(batchB);
    for (size_t layer = 0; layer < x.y.size(); ++layer)
      ASSERT_EQ(std::memcmp(x.y[layer].data(), y.y[layer].data(),
                            x.y[layer].size() * sizeof(float)),
                0)
          << "step " << step << ", layer " << layer;
  }
  for (size_t i = 0; i < a.size(); ++i)
    expectEqual(pools, a[i].slot, rows, b[i].slot, source.layers().size());
}

TEST_F(CudaRows, InPoolsGiveTheBitsOfFixedRows) {
  CudaUnderTest pools(source, pooled(5), false), rows(source, fixed(5), false);
  expectBitsOfFixedRows(source, pools, rows, 400, [] {});
  const ss_statistics found = pools.engine.statistics();
  EXPECT_EQ(found.tightened, 0);
  EXPECT_GE(found.allocated_bytes, found.used_bytes);
  EXPECT_GE(found.used_bytes, found.live_bytes);
  EXPECT_EQ(found.steps, 400);
  EXPECT_GT(found.mean_live_bytes, 0);
  EXPECT_GT(found.mean_allocated_bytes, found.mean_live_bytes);
  EXPECT_LE(found.mean_allocated_bytes, double(found.allocated_peak));
  // What states hold lies between what is in their rows and what pools hold.
  int64_t inPools = 0, fixedRows = 0, live = 0;
  for (int32_t layer = 0; layer < int32_t(source.layers().size()); ++layer) {
    const ss_layer_statistics s = pools.engine.layerStatistics(layer);
    EXPECT_GT(s.allocated_bytes, 0);
    inPools += s.allocated_bytes;
    fixedRows += rows.engine.layerStatistics(layer).allocated_bytes;
    live += s.rank_sum * 4;
  }
  EXPECT_GT(inPools, live);
  EXPECT_LT(inPools, found.allocated_bytes);
  // There all of the memory is of states but the tables, which are the same.
  const ss_statistics all = rows.engine.statistics();
  EXPECT_LT(fixedRows, all.allocated_bytes);
  EXPECT_GT(fixedRows, inPools);
  pools.engine.synchronize();
}

TEST_F(CudaRows, InPoolsGiveTheBitsOfFixedRowsInGraphs) {
  CudaUnderTest pools(source, pooled(5), false), rows(source, fixed(5), false);
  GraphReplay replayPools(pools.driver), replayRows(rows.driver);
  expectBitsOfFixedRows(source, pools, rows, 300,
                        [&] { pools.engine.tend(); });
  EXPECT_EQ(fake_forbidden_calls(), 0);
  EXPECT_EQ(pools.engine.statistics().tightened, 0);
  pools.engine.synchronize();
}

// Programs enough for an order: rows move before the decodes.
TEST_F(CudaRows, InPoolsGiveTheBitsOfFixedRowsInLargeBatches) {
  CudaUnderTest pools(source, pooled(13), false), rows(source, fixed(13), false);
  fake_watch("ss_order_programs");
  expectBitsOfFixedRows(source, pools, rows, 200, [] {}, 8);
  EXPECT_EQ(fake_watched_blocks(), 3u);
  GraphReplay replayPools(pools.driver), replayRows(rows.driver);
  expectBitsOfFixedRows(source, pools, rows, 100, [&] { pools.engine.tend(); }, 8);
  EXPECT_EQ(pools.engine.statistics().tightened, 0);
  pools.engine.synchronize();
}

TEST_F(CudaRows, ThatAreSqueezedGiveTheBitsOfFixedRows) {
  // Enough, but so that more than seven eighths are held.
  ss_engine_options options = pooled(5);
  options.state_bytes_limit = limitFor(options, 1.02);
  options.exhaustion = SS_EXHAUSTION_TIGHTEN;
  CudaUnderTest pools(source, options, false), rows(source, fixed(5), false);
  expectBitsOfFixedRows(source, pools, rows, 300, [] {});
  EXPECT_EQ(pools.engine.statistics().tightened, 0);
  EXPECT_LE(pools.engine.statistics().allocated_peak,
            options.state_bytes_limit);
}

TEST_F(CudaRows, GoBackToTheDriver) {
  CudaUnderTest cuda(source, pooled(8), false);
  cuda.engine.tend();
  const int64_t before = cuda.engine.statistics().allocated_bytes;
  std::vector<DrivenRequest> requests = requestsOf(cuda, 8);
  std::vector<DrivenRequest *> batch = batchOf(requests);
  for (int step = 0; step < 80; ++step)
    cuda.driver.step(batch);
  const int64_t full = cuda.engine.statistics().allocated_bytes;
  EXPECT_GT(full, before);
  // Half of the requests leave, and later all of them.
  for (int i = 0; i < 4; ++i)
    cuda.engine.freeSlot(requests[size_t(i)].slot);
  batch.erase(batch.begin(), batch.begin() + 4);
  for (int step = 0; step < 150; ++step)
    cuda.driver.step(batch);
  EXPECT_LT(cuda.engine.statistics().allocated_bytes, full);
  for (int i = 4; i < 8; ++i)
    cuda.engine.freeSlot(requests[size_t(i)].slot);
  for (int i = 0; i < 4; ++i)
    cuda.engine.tend();
  EXPECT_EQ(cuda.engine.statistics().allocated_bytes, before);
  // Ranks go on moving, and the steps ahead with them.
  EXPECT_GE(cuda.engine.statistics().allocated_peak, full);
  EXPECT_LE(cuda.engine.statistics().allocated_peak, full + full / 16);
}

TEST_F(CudaRows, AreRefusedAtTheLimitBeforeAStep) {
  ss_engine_options options = pooled(8);
  options.state_bytes_limit = limitFor(options, 0.4);
  CudaUnderTest cuda(source, options, false);
  std::vector<DrivenRequest> requests;
  std::vector<DrivenRequest *> batch;
  requests.reserve(8);
  auto refused = [](auto &&call) {
    try {
      call();
    } catch (const Exception &error) {
      EXPECT_EQ(error.code(), SS_OUT_OF_MEMORY);
      EXPECT_NE(std::string(error.what()).find("options.state_bytes_limit"),
                std::string::npos)
          << error.what();
      return true;
    }
    return false;
  };
  bool isRefused = false;
  for (int step = 0; step < 200 && !isRefused; ++step) {
    isRefused = refused([&] {
      if (requests.size() < 8 && step % 4 == 0) {
        requests.push_back(request(cuda, source, uint64_t(step), breathing()));
        batch.push_back(&requests.back());
      }
      cuda.driver.step(batch);
    });
    EXPECT_LE(cuda.engine.statistics().allocated_bytes,
              options.state_bytes_limit);
  }
  ASSERT_TRUE(isRefused);
  EXPECT_EQ(cuda.engine.statistics().refused, 1);
  EXPECT_EQ(cuda.engine.statistics().tightened, 0);
  // Room again.
  while (batch.size() > 1) {
    cuda.engine.freeSlot(batch.back()->slot);
    batch.pop_back();
  }
  for (int i = 0; i < 4; ++i)
    (void)refused([&] { cuda.engine.tend(); });
  cuda.driver.step(batch);
  cuda.engine.synchronize();
}

// Pools share the limit: one's room for steps to come is not another's next step, and
// the last step's report says exactly what that is.
TEST_F(CudaRows, RunAsFarWithALargerLimit) {
  constexpr int kSteps = 160;
  ss_engine_options options = pooled(12);
  auto stepsWithin = [&](double share) {
    ss_engine_options limited = options;
    limited.state_bytes_limit = limitFor(options, share);
    CudaUnderTest cuda(source, limited, false);
    int step = 0;
    try {
      std::vector<DrivenRequest> requests = requestsOf(cuda, 12);
      const std::vector<DrivenRequest *> batch = batchOf(requests);
      for (; step < kSteps; ++step)
        cuda.driver.step(batch);
    } catch (const Exception &error) {
      EXPECT_EQ(error.code(), SS_OUT_OF_MEMORY);
    }
    return step;
  };
  int before = 0;
  for (double share : {0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2}) {
    const int steps = stepsWithin(share);
    EXPECT_GE(steps, before) << share;
    before = steps;
    if (share >= 0.8) // of what they hold where nothing is short
      EXPECT_EQ(steps, kSteps) << share;
  }
}

TEST_F(CudaRows, TightenAtTheLimit) {
  ss_engine_options options = pooled(8);
  options.exhaustion = SS_EXHAUSTION_TIGHTEN;
  options.state_bytes_limit = limitFor(options, 0.4);
  CudaUnderTest cuda(source, options, false);
  std::vector<DrivenRequest> requests = requestsOf(cuda, 8);
  std::vector<DrivenRequest *> batch = batchOf(requests);
  for (int step = 0; step < 160; ++step) {
    cuda.driver.step(batch);
    ASSERT_LE(cuda.engine.statistics().allocated_bytes,
              options.state_bytes_limit);
  }
  const ss_statistics found = cuda.engine.statistics();
  EXPECT_GT(found.tightened, 0);
  EXPECT_EQ(found.refused, 0);
  int32_t bits = 0;
  for (const DrivenRequest &each : requests)
    for (int32_t layer = 0; layer < 3; ++layer)
      for (int32_t status : cuda.engine.status(layer, each.slot))
        bits |= status;
  EXPECT_EQ(bits, SS_STATUS_TIGHTENED);
  for (const DrivenRequest &each : requests)
    for (float x : cuda.engine.densify(0, each.slot))
      ASSERT_TRUE(std::isfinite(x));
  cuda.engine.synchronize();
}

TEST_F(CudaRows, OfReplaysThatNobodyTendsAreReported) {
  ss_engine_options options = pooled(6);
  options.state_bytes_limit = limitFor(options, 0.5);
  CudaUnderTest cuda(source, options, false);
  std::vector<DrivenRequest> requests = requestsOf(cuda, 6);
  const std::vector<DrivenRequest *> batch = batchOf(requests);
  GraphReplay replay(cuda.driver);
  for (int step = 0; step < 160; ++step)
    cuda.driver.step(batch);
  ASSERT_GT(cuda.engine.statistics().tightened, 0);
  EXPECT_EQ(ss_engine_synchronize(cuda.engine.get(), nullptr),
            SS_OUT_OF_MEMORY);
  EXPECT_NE(std::string(ss_last_error()).find("ss_engine_tend"),
            std::string::npos);
  EXPECT_EQ(ss_engine_synchronize(cuda.engine.get(), nullptr), SS_OK);
}

TEST_F(CudaRows, AreNotTendedWithinAStep) {
  CudaUnderTest cuda(source, pooled(1), false);
  DeviceArray<int32_t> slots(cuda.engine, 1);
  slots.copyIn({-1});
  cuda.engine.beginStep(slots.data(), 1);
  EXPECT_EQ(ss_engine_tend(cuda.engine.get(), nullptr), SS_INVALID_ARGUMENT);
  EXPECT_STREQ(ss_last_error(), "a step has begun and not ended, expected "
                                "ss_end_step first");
}

/// Full rank, hardly any decay.
RequestStyle fullRank() {
  RequestStyle style;
  style.gateMean = -40;
  return style;
}

TEST_F(CudaRows, BecomeMatricesWhereThoseAreSmaller) {
  FakePackage exact(pooledLayers(0));
  CudaUnderTest cuda(exact, cudaOptions(3));
  std::vector<DrivenRequest> requests;
  std::vector<DrivenRequest *> batch;
  for (uint64_t seed = 0; seed < 3; ++seed)
    requests.push_back(
        request(cuda, exact, seed, seed == 1 ? lowRankStyle() : fullRank()));
  for (DrivenRequest &each : requests)
    batch.push_back(&each);
  GraphReplay replay(cuda.driver);
  for (int step = 0; step < 120; ++step) {
    cuda.engine.tend();
    ASSERT_LE(cuda.driver.step(batch).worstError, 5e-5) << "step " << step;
  }
  const ss_statistics found = cuda.engine.statistics();
  EXPECT_GE(found.went_dense, 2 * (4 + 2 + 2));
  EXPECT_GT(found.folds, found.went_dense);
  EXPECT_EQ(found.tightened, 0);
  for (size_t i = 0; i < 3; ++i)
    for (size_t layer = 0; layer < 4; ++layer) {
      EXPECT_LE(cuda.driver.stateError(requests[i], layer), 5e-5);
      for (int32_t rank : cuda.engine.ranks(int32_t(layer), requests[i].slot))
        EXPECT_TRUE(rank < 0 || i == 1) << layer;
    }
  cuda.engine.synchronize();
}

TEST_F(CudaRows, OfMatricesAreFreedWithTheirSlot) {
  FakePackage exact(pooledLayers(0));
  CudaUnderTest cuda(exact, cudaOptions(1), false);
  const int64_t before = cuda.engine.statistics().allocated_bytes;
  DrivenRequest dense = request(cuda, exact, 1, fullRank());
  for (int step = 0; step < 80; ++step)
    cuda.driver.step({&dense});
  ASSERT_GT(cuda.engine.statistics().went_dense, 0);
  cuda.engine.resetSlot(dense.slot);
  for (float x : cuda.engine.densify(0, dense.slot))
    ASSERT_EQ(x, 0.0f);
  cuda.engine.freeSlot(dense.slot);
  for (int i = 0; i < 4; ++i)
    cuda.engine.tend();
  EXPECT_EQ(cuda.engine.statistics().allocated_bytes, before);
}

} // namespace
