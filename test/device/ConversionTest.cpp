//===- ConversionTest.cpp - Narrow floats of the device library -----------===//
//
// Every value of every narrow format, in every place of a register, against the
// format's definition: on a GPU these are instructions of its own.
//
//===----------------------------------------------------------------------===//

#include "PackageModels.h"
#include "SvdOracle.h"

#include "../unit/numeric/FloatFormat.h"

#include <bit>

using namespace sinkstate::test;

namespace {

class Conversions : public testing::TestWithParam<const char *> {
protected:
  FloatFormat format() const {
    const std::string type = GetParam();
    return type == "half"       ? FloatFormat::f16()
           : type == "bfloat16" ? FloatFormat::bf16()
                                : FloatFormat::fp8();
  }
};

TEST_P(Conversions, WidenEveryValueInEveryPlace) {
  std::string reason;
  const auto routines = RoutineRunner::open(reason);
  if (!routines)
    GTEST_SKIP() << reason;
  const FloatFormat narrow = format();
  const int count = narrow.count(), bitsOfOne = std::bit_width(unsigned(count)) - 1;
  const int places = 32 / bitsOfOne;
  // Odd factors: each place of a register takes every value once.
  std::vector<uint32_t> registers;
  for (int i = 0; i < count; ++i) {
    uint32_t whole = 0;
    for (int place = 0; place < places; ++place)
      whole |= uint32_t((i * (2 * place + 1) + 37 * place) % count)
               << (place * bitsOfOne);
    registers.push_back(whole);
  }
  const std::vector<float> wide = routines->widen(GetParam(), registers);
  ASSERT_EQ(wide.size(), registers.size() * size_t(places));
  for (size_t i = 0; i < wide.size(); ++i) {
    const auto bits = uint16_t(registers[i / size_t(places)] >>
                                   (i % size_t(places) * size_t(bitsOfOne)) &
                               uint32_t(count - 1));
    if (narrow.isNaN(bits))
      ASSERT_TRUE(std::isnan(wide[i])) << std::hex << bits;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]),
                std::bit_cast<uint32_t>(narrow.decode(bits)))
          << std::hex << bits;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Conversions,
                         testing::Values("half", "bfloat16", "float8"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
