//===- LayerTypesTest.cpp - The table of layer types ----------------------===//

#include "dialect/ss/SSLayerTypes.h"

#include <gtest/gtest.h>

using namespace sinkstate::ss;

TEST(LayerTypes, EveryTypeHasItsOwnRow) {
  unsigned count = 0;
  for (; symbolizeLayerType(count); ++count) {
    LayerType type = *symbolizeLayerType(count);
    EXPECT_EQ(getLayerTypeInfo(type).type, type);
  }
  EXPECT_EQ(count, 3u);
}

TEST(LayerTypes, RowsSayWhatTheMathematicsSays) {
  const LayerTypeInfo &mamba2 = getLayerTypeInfo(LayerType::mamba2);
  EXPECT_EQ(mamba2.theta, 0);
  EXPECT_FALSE(mamba2.channelDecay);
  EXPECT_FALSE(mamba2.hasBeta);
  EXPECT_EQ(mamba2.defaultGate, GateKind::softplus);
  const LayerTypeInfo &gdn = getLayerTypeInfo(LayerType::gdn);
  EXPECT_EQ(gdn.theta, 1);
  EXPECT_FALSE(gdn.channelDecay);
  EXPECT_TRUE(gdn.hasBeta);
  const LayerTypeInfo &kda = getLayerTypeInfo(LayerType::kda);
  EXPECT_EQ(kda.theta, 1);
  EXPECT_TRUE(kda.channelDecay);
  EXPECT_TRUE(kda.hasBeta);
  EXPECT_EQ(kda.defaultGate, GateKind::softplus_channel);
}

TEST(LayerTypes, KeywordsAreListedForMessages) {
  EXPECT_EQ(listKeywords<LayerType>(), "mamba2, gdn or kda");
  EXPECT_EQ(listKeywords<Form>(), "factored, dense, deferred or sink");
  EXPECT_EQ(listKeywords<PolicyKind>(), "relative, fixed, energy or budget");
}
