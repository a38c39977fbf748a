//===- CastTest.cpp - printed casts of narrow floats, every value -------------------===//
//
// The printed kernels with the device library's conversions as a host compiler has
// them; those of a GPU are instructions, and run in the conformance suite there.
//
//===----------------------------------------------------------------------===//
#include "../../numeric/FloatFormat.h"
#include "../CastKernels.h"
#include "HostKernels.h"

#include <gtest/gtest.h>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::string withType(const std::string &type) {
  std::string text = kCastKernels;
  for (size_t at; (at = text.find("${T}")) != std::string::npos;)
    text.replace(at, 4, type);
  return text;
}

class PrintedCasts : public testing::TestWithParam<const char *> {};

template <typename Bits>
void expectWidening(const EmulatedKernels &kernels, const FloatFormat &format) {
  std::vector<Bits> all(size_t(format.count()));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = Bits(i);
  std::vector<float> wide(all.size()), scalars(all.size() / 128);
  void *pointers[] = {all.data(), wide.data(), scalars.data()};
  const void *arguments[] = {&pointers[0], &pointers[1], &pointers[2]};
  kernels.run("widen", arguments, int64_t(scalars.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    if (format.isNaN(all[i]))
      ASSERT_TRUE(std::isnan(wide[i])) << std::hex << i;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(format.decode(all[i])))
          << std::hex << i;
  }
}

template <typename Bits>
void expectRounding(const EmulatedKernels &kernels, const FloatFormat &format) {
  std::vector<float> inputs = format.inputs();
  inputs.resize((inputs.size() + 127) / 128 * 128);
  std::vector<Bits> narrow(inputs.size()), scalars(inputs.size() / 128);
  void *pointers[] = {inputs.data(), narrow.data(), scalars.data()};
  const void *arguments[] = {&pointers[0], &pointers[1], &pointers[2]};
  kernels.run("narrow", arguments, int64_t(scalars.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::isnan(inputs[i]))
      ASSERT_TRUE(format.isNaN(narrow[i])) << inputs[i];
    else
      ASSERT_EQ(narrow[i], format.encode(inputs[i])) << inputs[i];
  }
}

template <typename Bits> void expectCasts(const char *type, const FloatFormat &format) {
  PreparedModule module(withType(type));
  ASSERT_TRUE(module);
  EmulatedKernels kernels(module);
  expectWidening<Bits>(kernels, format);
  expectRounding<Bits>(kernels, format);
}

TEST_P(PrintedCasts, AreThoseOfTheFormat) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  const std::string type = GetParam();
  if (type == "f8E4M3FN")
    return expectCasts<uint8_t>(GetParam(), FloatFormat::fp8());
  expectCasts<uint16_t>(GetParam(), type == "f16" ? FloatFormat::f16() : FloatFormat::bf16());
}

INSTANTIATE_TEST_SUITE_P(Types, PrintedCasts, testing::Values("f16", "bf16", "f8E4M3FN"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
