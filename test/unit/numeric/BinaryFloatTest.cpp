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
