//===- EngineTest.cpp - The decode loop over the C API --------------------===//
//
// The kernels are the reference ones, so that these tests need no compiler.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "DenseBackend.h"
#include "EngineBackend.h"
#include "ReferencePackage.h"
#include "Safetensors.h"

#include <gtest/gtest.h>

using namespace tiny_hybrid;
using namespace tiny_hybrid_test;

namespace {

class EngineTest : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Model::load(TINY_HYBRID_MODEL);
    ASSERT_TRUE(loaded) << loaded.error();
    model = std::move(*loaded);
    auto golden =
        SafetensorsFile::open(TINY_HYBRID_MODEL "/golden.safetensors");
    ASSERT_TRUE(golden) << golden.error();
    tokens = *golden->readBytes("tokens");
    ss_engine_options_init(&options);
    options.threads = 1;
  }

  /// The largest difference of logits between an engine over these layers and
  /// the plain loop.
  float difference(std::vector<sinkstate::reference::LayerSpec> layers,
                   int steps) {
    ReferencePackage package(std::move(layers));
    EXPECT_TRUE(package.isOpen()) << ss_last_error();
    auto states = EngineBackend::create(package.get(), options, model.config,
                                        /*batch=*/1);
    EXPECT_TRUE(states) << states.error();
    if (!states)
      return INFINITY;
    DenseBackend dense(model.config, 1, 1);
    Decoder expected(model, dense, 1, 1), found(model, **states, 1, 1);
    float largest = 0;
    for (int t = 0; t < steps; ++t) {
      EXPECT_FALSE(expected.step({&tokens[t], 1}));
      EXPECT_FALSE(found.step({&tokens[t], 1}));
      largest = std::max(
          largest, (expected.logits() - found.logits()).cwiseAbs().maxCoeff());
    }
    Result<int> tightened = (*states)->checkStates();
    EXPECT_TRUE(tightened) << tightened.error();
    EXPECT_EQ(*tightened, 0);
    return largest;
  }

  std::string createError(std::vector<sinkstate::reference::LayerSpec> layers) {
    ReferencePackage package(std::move(layers));
    EXPECT_TRUE(package.isOpen()) << ss_last_error();
    auto states =
        EngineBackend::create(package.get(), options, model.config, 1);
    return states ? "created" : states.error();
  }

  Model model;
  std::vector<uint8_t> tokens;
  ss_engine_options options;
};

TEST_F(EngineTest, NothingDroppedIsTheDenseModel) {
  EXPECT_LE(difference(layersOf(model.config), 192), 2e-3f);
  options.dense_fallback = 0;
  EXPECT_LE(difference(layersOf(model.config), 192), 2e-3f);
}

TEST_F(EngineTest, DenseLayersAreTheDenseModel) {
  auto layers = layersOf(model.config);
  for (auto &layer : layers)
    layer.denseForm = true;
  EXPECT_LE(difference(layers, 64), 2e-3f);
}

TEST_F(EngineTest, DroppedComponentsShow) {
  auto layers = layersOf(model.config);
  for (auto &layer : layers)
    layer.policyValue = 0.3;
  EXPECT_GE(difference(layers, 64), 1e-2f);
}

TEST_F(EngineTest, RejectsPackagesOfAnotherModel) {
  auto layers = layersOf(model.config);
  layers[1].dv = 64;
  EXPECT_EQ(createError(layers), "layer 1 of the package: found dv 64, "
                                 "expected 80 as config.json says");
  layers = layersOf(model.config);
  layers.pop_back();
  EXPECT_EQ(createError(layers), "package: found no layer with index 6, "
                                 "expected the kda layer of config.json");
  layers = layersOf(model.config);
  layers[0].index = 3;
  EXPECT_EQ(createError(layers), "layer 'layer0' of the package: found index "
                                 "3, expected a recurrent layer of "
                                 "config.json");
  layers = layersOf(model.config);
  std::swap(layers[0].index, layers[2].index);
  EXPECT_EQ(createError(layers), "layer 2 of the package: found type gdn, "
                                 "expected type kda as config.json says");
}

} // namespace
