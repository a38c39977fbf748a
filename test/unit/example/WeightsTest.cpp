//===- WeightsTest.cpp - Weights that do not fit the configuration --------===//

#include "Weights.h"
#include "TemporaryFile.h"

#include <gtest/gtest.h>

using namespace tiny_hybrid;
using namespace tiny_hybrid_test;

namespace {

class WeightsTest : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Config::load(TINY_HYBRID_MODEL "/config.json");
    ASSERT_TRUE(loaded) << loaded.error();
    config = *loaded;
    bytes = readFile(TINY_HYBRID_MODEL "/model.safetensors");
    ASSERT_FALSE(bytes.empty());
  }

  /// Replaces text in the header by text of the same length.
  void replace(const std::string &from, const std::string &to) {
    ASSERT_EQ(from.size(), to.size());
    size_t position = bytes.find(from);
    ASSERT_NE(position, std::string::npos) << from;
    bytes.replace(position, from.size(), to);
  }

  std::string error() {
    TemporaryFile file(bytes);
    auto weights = Weights::load(file.path, config);
    if (weights)
      return "loaded";
    return weights.error().substr(file.path.size() + 2);
  }

  Config config;
  std::string bytes;
};

TEST_F(WeightsTest, LoadsTheModel) {
  auto weights = Weights::load(TINY_HYBRID_MODEL "/model.safetensors", config);
  ASSERT_TRUE(weights) << weights.error();
  EXPECT_EQ(weights->layers.size(), 8u);
  EXPECT_EQ(weights->layers[1].recurrent.v.projection.rows(), 320);
  EXPECT_EQ(weights->layers[1].recurrent.beta.size(), 0);
  EXPECT_EQ(weights->layers[2].recurrent.gateUp.cols(), 64);
}

TEST_F(WeightsTest, RejectsAnotherShapeThanTheConfiguration) {
  config.gdn.heads = config.gdn.keyHeads = 4;
  EXPECT_EQ(error(), "tensor 'layers.0.mixer.A_log': found shape [2], expected "
                     "[4]");
}

TEST_F(WeightsTest, RejectsNumbersThatAreNotFinite) {
  // The last bytes of the file are a bfloat16's.
  const std::string whole = bytes;
  bytes.replace(bytes.size() - 2, 2, "\xc0\x7f");
  EXPECT_TRUE(error().find("found NaN at element ") != std::string::npos)
      << error();
  bytes = whole;
  bytes.replace(bytes.size() - 2, 2, "\x80\xff");
  EXPECT_TRUE(error().find("found infinity at element ") != std::string::npos)
      << error();
}

TEST_F(WeightsTest, RejectsMissingAndUnexpectedTensors) {
  replace("\"layers.0.mixer.A_log\"", "\"layers.0.mixer.A_lag\"");
  EXPECT_EQ(error(), "tensor 'layers.0.mixer.A_log': not found, expected among "
                     "the 133 tensors of the file");
  SetUp();
  config.layers.pop_back();
  EXPECT_EQ(error(), "tensor 'layers.7.mixer.k.weight': found, expected no "
                     "such tensor in the model of config.json");
}

TEST_F(WeightsTest, RejectsAnotherType) {
  replace("\"norm.weight\":{\"dtype\":\"F32\"",
          "\"norm.weight\":{\"dtype\":\"I32\"");
  EXPECT_EQ(error(),
            "tensor 'norm.weight': found dtype I32, expected BF16 or F32");
}

TEST_F(WeightsTest, RejectsTruncatedFiles) {
  bytes.resize(bytes.size() - 1);
  EXPECT_NE(error().find("the file is truncated"), std::string::npos)
      << error();
}

} // namespace
