//===- GoldenTest.cpp - The decode loop against float64 logits ------------===//
//
// golden.safetensors has the logits of the dense recurrence in float64 over
// the same weights.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "DenseBackend.h"
#include "Safetensors.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tiny_hybrid;

namespace {

class GoldenTest : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Model::load(TINY_HYBRID_MODEL);
    ASSERT_TRUE(loaded) << loaded.error();
    model = std::move(*loaded);
    auto golden =
        SafetensorsFile::open(TINY_HYBRID_MODEL "/golden.safetensors");
    ASSERT_TRUE(golden) << golden.error();
    auto readTokens = golden->readBytes("tokens");
    ASSERT_TRUE(readTokens) << readTokens.error();
    tokens = std::move(*readTokens);
    auto readLogits =
        golden->readFloats("logits", {int64_t(tokens.size()) - 1, 256});
    ASSERT_TRUE(readLogits) << readLogits.error();
    logits = std::move(*readLogits);
  }

  /// The largest difference of a row to the golden logits of a position; NaN
  /// where a value is not finite.
  float difference(const Decoder &decoder, int row, size_t position) const {
    float largest = 0;
    for (int symbol = 0; symbol < 256; ++symbol) {
      float found = decoder.logits()(row, symbol);
      if (!std::isfinite(found))
        return NAN;
      largest =
          std::max(largest, std::abs(found - logits[position * 256 + symbol]));
    }
    return largest;
  }

  Model model;
  std::vector<uint8_t> tokens;
  std::vector<float> logits;
};

TEST_F(GoldenTest, DenseLogitsAgree) {
  ASSERT_EQ(tokens.size(), 1025u);
  DenseBackend states(model.config, 1, 1);
  Decoder decoder(model, states, 1, 1);
  for (size_t t = 0; t + 1 < tokens.size(); ++t) {
    ASSERT_FALSE(decoder.step({&tokens[t], 1}));
    ASSERT_LE(difference(decoder, 0, t), 2e-3f) << "at token " << t;
  }
  EXPECT_EQ(decoder.position(), 1024);
}

// The second request reads other bytes: requests must not see each other, and
// the work must not depend on how many threads share it.
TEST_F(GoldenTest, RequestsOfABatchAreIndependent) {
  constexpr int batch = 3;
  DenseBackend states(model.config, batch, 2);
  Decoder decoder(model, states, batch, 2);
  for (size_t t = 0; t < 64; ++t) {
    const uint8_t step[batch] = {tokens[t], uint8_t(255 - tokens[t]),
                                 tokens[t]};
    ASSERT_FALSE(decoder.step(step));
    ASSERT_LE(difference(decoder, 0, t), 2e-3f) << "at token " << t;
    ASSERT_LE(difference(decoder, 2, t), 2e-3f) << "at token " << t;
    ASSERT_GT(difference(decoder, 1, t), 1e-1f) << "at token " << t;
  }
}

TEST_F(GoldenTest, RejectsAnotherNumberOfTokens) {
  DenseBackend states(model.config, 2, 1);
  Decoder decoder(model, states, 2, 1);
  Status status = decoder.step({tokens.data(), 1});
  ASSERT_TRUE(status);
  EXPECT_EQ(status->message, "found 1 tokens, expected one for each of the 2 "
                             "requests");
}

} // namespace
