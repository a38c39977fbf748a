//===- CastTest.cpp - casts from and to narrow floats, every value ---------===//
#include "../../numeric/FloatFormat.h"
#include "../CastKernels.h"
#include "CpuTest.h"

#include <cstring>

using namespace sinkstate::test;

namespace {

class CastTest : public CpuTest {
protected:
  template <typename Bits>
  void checkWidening(const Kernels &kernels, const FloatFormat &format) {
    std::vector<Bits> all(size_t(128 * format.count()));
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = Bits(i * 63); // every value, as 63 is odd
    std::vector<float> wide(all.size()), scalars(all.size() / 128);
    const Bits *a = all.data();
    float *b = wide.data(), *s = scalars.data();
    kernels.run("widen", 0, int64_t(scalars.size()), a, b, s);
    auto expectValue = [&](uint16_t bits, float got) {
      const float expected = format.decode(bits);
      if (format.isNaN(bits))
        ASSERT_TRUE(std::isnan(got)) << std::hex << bits;
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected))
            << std::hex << bits;
    };
    for (size_t i = 0; i < all.size(); ++i)
      expectValue(all[i], wide[i]);
    for (size_t i = 0; i < scalars.size(); ++i)
      expectValue(all[i * 128], scalars[i]);
  }

  template <typename Bits>
  void checkRounding(const Kernels &kernels, const FloatFormat &format) {
    std::vector<float> all = format.inputs();
    all.resize((all.size() + 127) / 128 * 128);
    std::vector<Bits> narrow(all.size()), scalars(all.size() / 128);
    const float *a = all.data();
    Bits *b = narrow.data(), *s = scalars.data();
    kernels.run("narrow", 0, int64_t(scalars.size()), a, b, s);
    auto expectValue = [&](float x, uint16_t got) {
      if (std::isnan(x))
        ASSERT_TRUE(format.isNaN(got)) << std::hex << got;
      else
        ASSERT_EQ(got, format.encode(x)) << x;
    };
    for (size_t i = 0; i < all.size(); ++i)
      expectValue(all[i], narrow[i]);
    for (size_t i = 0; i < scalars.size(); ++i)
      expectValue(all[i * 128], scalars[i]);
  }

  template <typename Bits>
  void check(const char *type, const FloatFormat &format) {
    Kernels kernels(substitute(kCastKernels, {{"T", type}}), GetParam());
    checkWidening<Bits>(kernels, format);
    checkRounding<Bits>(kernels, format);
  }
};

TEST_P(CastTest, OfF16) { check<uint16_t>("f16", FloatFormat::f16()); }
TEST_P(CastTest, OfBF16) { check<uint16_t>("bf16", FloatFormat::bf16()); }
TEST_P(CastTest, OfFP8) { check<uint8_t>("f8E4M3FN", FloatFormat::fp8()); }

INSTANTIATE_TEST_SUITE_P(Targets, CastTest, testing::ValuesIn(getTargets()),
                         getTargetName);

} // namespace
