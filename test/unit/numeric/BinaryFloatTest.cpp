//===- BinaryFloatTest.cpp - Every value of every format ------------------===//
//
// Against tables of all values of a format and a search in them, in every
// rounding mode and with subnormal numbers flushed: a caller's thread may have
// any of these set.
//
//===----------------------------------------------------------------------===//
#include "FloatFormat.h"

#include "numeric/Elements.h"

#include <gtest/gtest.h>

#include <cfenv>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

using namespace sinkstate;
using sinkstate::test::FloatFormat;

namespace {

/// How a thread rounds, for one scope.
class FloatEnvironment {
public:
  FloatEnvironment(int rounding, bool flush) {
    std::fegetenv(&before);
    std::fesetround(rounding);
#ifdef __SSE__
    if (flush)
      _mm_setcsr(_mm_getcsr() | 0x8040); // flush to zero, denormals are zero
#else
    (void)flush;
#endif
  }
  ~FloatEnvironment() { std::fesetenv(&before); }

private:
  std::fenv_t before;
};

struct Case {
  const char *name;
  numeric::ElementType type;
  FloatFormat format;
};

class BinaryFloats : public testing::TestWithParam<Case> {
protected:
  numeric::ElementType type() const { return GetParam().type; }
  const FloatFormat &format() const { return GetParam().format; }

  void checkWidening() const {
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = uint16_t(i);
    std::vector<float> wide(all.size());
    numeric::loadElements(type(), wide.data(), all.data(), int64_t(all.size()));
    for (size_t i = 0; i < all.size(); ++i) {
      if (format().isNaN(all[i]))
        ASSERT_TRUE(std::isnan(wide[i])) << i;
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]),
                  std::bit_cast<uint32_t>(expectedWide[i]))
            << i;
    }
  }

  void checkRounding() const {
    std::vector<uint16_t> narrow(inputs.size());
    numeric::storeElements(type(), narrow.data(), inputs.data(),
                           int64_t(inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto bits = std::bit_cast<uint32_t>(inputs[i]);
      if ((bits & 0x7fffffff) > 0x7f800000) {
        ASSERT_TRUE(format().isNaN(narrow[i])) << std::hex << bits;
        ASSERT_EQ(narrow[i] >> 15, bits >> 31) << std::hex << bits;
      } else {
        ASSERT_EQ(narrow[i], expectedNarrow[i]) << std::hex << bits;
      }
    }
  }

  void SetUp() override {
    inputs = format().inputs();
    for (float x : inputs)
      expectedNarrow.push_back(format().encode(x));
    for (uint32_t bits = 0; bits < 65536; ++bits)
      expectedWide.push_back(format().decode(uint16_t(bits)));
  }

  std::vector<float> inputs, expectedWide;
  std::vector<uint16_t> expectedNarrow;
};

TEST_P(BinaryFloats, AreWhatTheirDefinitionSays) {
  checkWidening();
  checkRounding();
}

TEST_P(BinaryFloats, DoNotDependOnHowTheThreadRounds) {
  for (int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
    for (bool flush : {false, true}) {
      const FloatEnvironment environment(rounding, flush);
      checkWidening();
      checkRounding();
    }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, BinaryFloats,
    testing::Values(Case{"f16", numeric::ElementType::F16, FloatFormat::f16()},
                    Case{"bf16", numeric::ElementType::BF16,
                         FloatFormat::bf16()}),
    [](const auto &info) { return std::string(info.param.name); });

/// In every rounding mode, as above.
template <typename Body> void inEveryEnvironment(const Body &body) {
  for (int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
    for (bool flush : {false, true}) {
      const FloatEnvironment environment(rounding, flush);
      body();
    }
}

TEST(ByteFloats, AreWhatTheirDefinitionSays) {
  const FloatFormat format = FloatFormat::fp8();
  const std::vector<float> inputs = format.inputs();
  std::vector<uint16_t> expected;
  for (float x : inputs)
    expected.push_back(format.encode(x));
  inEveryEnvironment([&] {
    for (int bits = 0; bits < 256; ++bits) {
      const float value = numeric::E4M3::widen(uint8_t(bits));
      if (format.isNaN(uint16_t(bits)))
        ASSERT_NE(std::bit_cast<uint32_t>(value) & 0x7fffff, 0u) << bits;
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(value),
                  std::bit_cast<uint32_t>(format.decode(uint16_t(bits))))
            << bits;
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      ASSERT_EQ(numeric::E4M3::narrow(inputs[i]), expected[i]) << inputs[i];
  });
}

// Stored 2^8 times as long, and exact on the way back.
TEST(ByteFloats, HoldElementsOfUnitRows) {
  const float row[] = {1, -1, 0.5f, 0x1p-17f, -0x1.8p-4f, 0, 0.3f};
  inEveryEnvironment([&] {
    uint8_t stored[std::size(row)];
    float back[std::size(row)];
    numeric::storeElements(numeric::ElementType::FP8, stored, row,
                           std::size(row));
    numeric::loadElements(numeric::ElementType::FP8, back, stored,
                          std::size(row));
    for (size_t i = 0; i + 1 < std::size(row); ++i)
      EXPECT_EQ(back[i], row[i]);
    EXPECT_NEAR(back[6], 0.3f, 0.3f / 16);
  });
}

TEST(Elements, OfF32AreCopied) {
  const float from[] = {1.5f, -0.0f, 1e-42f};
  float to[3] = {}, back[3] = {};
  numeric::loadElements(numeric::ElementType::F32, to, from, 3);
  numeric::storeElements(numeric::ElementType::F32, back, to, 3);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(back[i]),
              std::bit_cast<uint32_t>(from[i]));
  numeric::loadElements(numeric::ElementType::F32, nullptr, nullptr, 0);
}

} // namespace
