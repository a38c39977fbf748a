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

TEST(Floors, CountRowsInTheirStorage) {
  using sinkstate::runtime::Storage;
  auto layer = gdnLayer();
  const std::vector<int32_t> ranks(2 * 4, 10);
  const double before = floorOf(layer, 2, ranks).decodeBytes;
  const double compact = floorOf(layer, 2, ranks).compactBytes;
  const double held = stateBytes(layer, 2, ranks);
  for (auto [storage, bytes] :
       {std::pair{Storage::F16, 2}, {Storage::BF16, 2}, {Storage::FP8, 1}}) {
    layer.storage = storage;
    // 80 rows of 48 elements; weights and buffers stay f32.
    const double saved = (4 - bytes) * 80 * 48;
    EXPECT_DOUBLE_EQ(floorOf(layer, 2, ranks).decodeBytes, before - saved);
    EXPECT_DOUBLE_EQ(floorOf(layer, 2, ranks).compactBytes,
                     compact - (4 - bytes) * 2 * 64 * 48 / 8.0);
    EXPECT_DOUBLE_EQ(stateBytes(layer, 2, ranks), held - saved);
  }
  layer.denseForm = true;
  layer.storage = Storage::F16;
  EXPECT_DOUBLE_EQ(stateBytes(layer, 1, {}), 2.0 * 4 * 16 * 32);
  EXPECT_DOUBLE_EQ(floorOf(layer, 1, {}).decodeBytes,
                   4 * (4 * (2 * 16 + 2) + 2 * 64.0) + 2 * 4 * 2 * 16 * 32);
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

} // namespace
