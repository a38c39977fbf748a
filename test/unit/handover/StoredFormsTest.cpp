//===- StoredFormsTest.cpp - Dense states for engines of other storage ----===//

#include "handover/SlotImage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace sinkstate;
using namespace sinkstate::runtime;

namespace {

/// Dense states of 5 x 6 that have one element each.
LayerImage statesOf(std::vector<float> elements) {
  LayerImage layer;
  layer.shape = {"gdn", 0, int32_t(elements.size()), 1, 5, 6, false, false};
  for (size_t i = 0; i < elements.size(); ++i) {
    layer.heads.push_back({-1, 0, 9, 2});
    layer.rows.resize(layer.rows.size() + 5 * 6);
    layer.rows[i * 5 * 6 + 7] = elements[i]; // column 1, row 2
  }
  return layer;
}

std::vector<int32_t> ranksOf(const LayerImage &layer) {
  std::vector<int32_t> ranks;
  for (const HeadImage &head : layer.heads)
    ranks.push_back(head.rank);
  return ranks;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(StoredForms, OfWhatF16DoesNotHoldAreFactors) {
  LayerImage layer = statesOf({1, 1e5f, 1e-5f, kNan});
  const LayerImage before = layer;
  storeInFactors(layer, 0, Storage::F16);
  EXPECT_EQ(ranksOf(layer), (std::vector<int32_t>{-1, 1, 1, -1}));
  ASSERT_EQ(layer.weights.size(), 2u);
  EXPECT_FLOAT_EQ(layer.weights[0], 1e5f);
  EXPECT_FLOAT_EQ(layer.weights[1], 1e-5f);
  // What stays is where it was, to the bit; a factor's row is [v | u] of length 1.
  EXPECT_TRUE(std::equal(layer.rows.begin(), layer.rows.begin() + 30,
                         before.rows.begin()));
  const float *row = layer.rows.data() + 30;
  EXPECT_FLOAT_EQ(row[1] * row[6 + 2], 1);
  EXPECT_TRUE(std::isnan(layer.rows[30 + 2 * 11 + 7]));
}

TEST(StoredForms, OfStoragesWithTheExponentsStayDense) {
  for (Storage storage : {Storage::F32, Storage::BF16}) {
    LayerImage layer = statesOf({1, 1e5f, 1e-5f});
    storeInFactors(layer, 0, storage);
    EXPECT_EQ(ranksOf(layer), (std::vector<int32_t>{-1, -1, -1}));
    EXPECT_EQ(layer.rows, statesOf({1, 1e5f, 1e-5f}).rows);
  }
}

TEST(StoredForms, OfEnginesWithoutADenseFormAreFactors) {
  LayerImage layer = statesOf({1, 1e5f});
  storeInFactors(layer, 0, std::nullopt);
  EXPECT_EQ(ranksOf(layer), (std::vector<int32_t>{1, 1}));
}

} // namespace
