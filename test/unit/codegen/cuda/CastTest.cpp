//===- CastTest.cpp - printed casts of 16-bit floats, every value -------------------===//
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

TEST_P(PrintedCasts, AreThoseOfTheFormat) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  const std::string type = GetParam();
  const FloatFormat format = type == "f16" ? FloatFormat::f16() : FloatFormat::bf16();
  PreparedModule module(withType(type));
  ASSERT_TRUE(module);
  EmulatedKernels kernels(module);

  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = uint16_t(i);
  std::vector<float> wide(all.size()), wideScalars(all.size() / 64);
  void *pointers[] = {all.data(), wide.data(), wideScalars.data()};
  const void *widening[] = {&pointers[0], &pointers[1], &pointers[2]};
  kernels.run("widen", widening, int64_t(wideScalars.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    if (format.isNaN(all[i]))
      ASSERT_TRUE(std::isnan(wide[i])) << std::hex << i;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(format.decode(all[i])))
          << std::hex << i;
  }

  std::vector<float> inputs = format.inputs();
  inputs.resize((inputs.size() + 63) / 64 * 64);
  std::vector<uint16_t> narrow(inputs.size()), narrowScalars(inputs.size() / 64);
  void *others[] = {inputs.data(), narrow.data(), narrowScalars.data()};
  const void *rounding[] = {&others[0], &others[1], &others[2]};
  kernels.run("narrow", rounding, int64_t(narrowScalars.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::isnan(inputs[i]))
      ASSERT_TRUE(format.isNaN(narrow[i])) << inputs[i];
    else
      ASSERT_EQ(narrow[i], format.encode(inputs[i])) << inputs[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PrintedCasts, testing::Values("f16", "bf16"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
