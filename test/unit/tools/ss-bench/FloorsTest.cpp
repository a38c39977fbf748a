//===- FloorsTest.cpp - Bytes and operations of a step --------------------===//

#include "Floors.h"
#include "TestLayers.h"

#include <gtest/gtest.h>

using namespace ss_bench;

namespace {

TEST(Floors, CountKeysOncePerHeadOfKeys) {
  auto layer = gdnLayer();
  const std::vector<int32_t> ranks(2 * 4, 10);
  const Floor floor = floorOf(layer, 2, ranks);
  // Per state: 10 rows, v, y, gate, beta, 4.5 values and decays; per head of
  // keys: q, k and 4.5 keys.
  const double state = 10 * 49 + 2 * 16 + 2 + 4.5 * 17;
  const double group = 2 * 32 + 4.5 * 32;
  EXPECT_DOUBLE_EQ(floor.decodeBytes, 4 * (8 * state + 4 * group));
  // 8 active rows read and written, 8 pairs read, once in 8 steps.
  EXPECT_DOUBLE_EQ(floor.compactBytes, 4 * 8 * 24 * 49 / 8.0);
  EXPECT_DOUBLE_EQ(floor.flops, 8 * 14.5 * 2 * 48 * 2);
  EXPECT_DOUBLE_EQ(stateBytes(layer, 2, ranks),
                   4.0 * (8 * (10 * 49 + 8 * 17) + 4 * 8 * 32) + 8 * 20);
}

TEST(Floors, CountElementsOfTheirStorage) {
  auto layer = gdnLayer();
  const std::vector<int32_t> ranks(4, 10);
  const Floor wide = floorOf(layer, 1, ranks);
  const double bytes = stateBytes(layer, 1, ranks);
  layer.storage = sinkstate::runtime::Storage::F16;
  const Floor narrow = floorOf(layer, 1, ranks);
  // Rows are half as wide; weights, buffers and inputs are not.
  EXPECT_DOUBLE_EQ(wide.decodeBytes - narrow.decodeBytes, 4 * 10 * 48 * 2.0);
  EXPECT_DOUBLE_EQ(wide.compactBytes - narrow.compactBytes,
                   4 * 16 * 48 * 2.0 / 8);
  EXPECT_DOUBLE_EQ(bytes - stateBytes(layer, 1, ranks), 4 * 10 * 48 * 2.0);
  layer.storage = sinkstate::runtime::Storage::FP8;
  EXPECT_DOUBLE_EQ(bytes - stateBytes(layer, 1, ranks), 4 * 10 * 48 * 3.0);
}

TEST(Floors, OfAStateHeldDense) {
  auto layer = gdnLayer();
  std::vector<int32_t> ranks(4, 10);
  const Floor factored = floorOf(layer, 1, ranks);
  const double bytes = stateBytes(layer, 1, ranks);
  ranks[2] = -1;
  const Floor one = floorOf(layer, 1, ranks);
  const double matrix = 4.0 * 16 * 32;
  EXPECT_DOUBLE_EQ(one.decodeBytes - factored.decodeBytes,
                   matrix - 10 * 49 * 4);
  // It is read and written where eight rows were.
  EXPECT_DOUBLE_EQ(one.compactBytes - factored.compactBytes,
                   (2 * matrix - 16 * 49 * 4) / 8);
  EXPECT_DOUBLE_EQ(stateBytes(layer, 1, ranks) - bytes, matrix - 10 * 49 * 4);
}

TEST(Floors, OfADenseLayerReadAndWriteIt) {
  auto layer = gdnLayer();
  layer.denseForm = true;
  const Floor floor = floorOf(layer, 1, {});
  EXPECT_DOUBLE_EQ(floor.decodeBytes,
                   4 * (4 * (2 * 16 * 32 + 2 * 16 + 2) + 2 * 64.0));
  EXPECT_EQ(floor.compactBytes, 0);
  EXPECT_DOUBLE_EQ(stateBytes(layer, 1, {}), 4.0 * 4 * 16 * 32);
}

TEST(Floors, OfADeferredLayerWriteItOnceInABuffer) {
  auto layer = gdnLayer();
  layer.denseForm = layer.deferred = true;
  const Floor floor = floorOf(layer, 1, {});
  // Pairs: 4.5 read, one written; keys once per head of keys.
  const double state = 2 * 16 + 2 + 5.5 * 17, group = 2 * 32 + 5.5 * 32;
  EXPECT_DOUBLE_EQ(floor.decodeBytes,
                   4 * (4 * state + 2 * group + 4 * 16 * 32 * (1 + 1 / 8.0)));
  EXPECT_EQ(floor.compactBytes, 0);
  EXPECT_DOUBLE_EQ(stateBytes(layer, 1, {}),
                   4.0 * (4 * (16 * 32 + 8 * 17) + 2 * 2 * 8 * 32));
}

} // namespace
