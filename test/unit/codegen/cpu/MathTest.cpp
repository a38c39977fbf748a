//===- MathTest.cpp - generated exp, log, log1p and sqrt ------------------===//
#include "CpuTest.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace sinkstate::test;

namespace {

class MathTest : public CpuTest {};

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Applies `body`, which makes %y of %x, to 1024 elements over the lanes, and
/// to the first element as a scalar.
std::string mathKernel(const std::string &body) {
  return substitute(R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %o: !ssk.global<f32> {ssk.name = "o"},
                  %s: !ssk.global<f32> {ssk.name = "s"}) {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %c1024 = arith.constant 1024 : index
      %one = arith.constant 1.0 : f32
      scf.for %i = %c0 to %c1024 step %c64 {
        %t = ssk.load %a[%i] : !ssk.global<f32> -> !ssk.tile<64xf32, lanes = 0>
        %u = ssk.map (%t) dims [[0]] : (!ssk.tile<64xf32, lanes = 0>) -> !ssk.tile<64xf32, lanes = 0> {
        ^bb0(%x: f32):
          ${BODY}
          ssk.yield %y : f32
        }
        ssk.store %u, %o[%i] : !ssk.tile<64xf32, lanes = 0>, !ssk.global<f32>
      }
      %x = ssk.read %a[%c0] : !ssk.global<f32>
      ${BODY}
      ssk.write %y, %s[%c0] : !ssk.global<f32>
      ssk.return
    })",
                    {{"BODY", body}});
}

/// Distance in units of the last place of the f32 nearest to `expected`.
double getUlps(float got, double expected) {
  if (std::isnan(expected) || std::isnan(got))
    return std::isnan(expected) && std::isnan(got) ? 0 : 1e9;
  float rounded = float(expected);
  if (std::isinf(rounded) || std::isinf(got))
    return got == rounded ? 0 : 1e9;
  int exponent;
  std::frexp(std::fabs(rounded), &exponent);
  double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(double(got) - expected) / ulp;
}

template <typename Reference>
void check(const Target &target, const std::string &body,
           std::vector<float> inputs, Reference reference, double ulps) {
  Kernels kernels(mathKernel(body), target);
  inputs.resize((inputs.size() + 1023) / 1024 * 1024, inputs.back());
  std::vector<float> outputs(inputs.size()), scalar(1);
  for (size_t at = 0; at < inputs.size(); at += 1024)
    kernels.run("f", 0, 1, inputs.data() + at, outputs.data() + at,
                scalar.data());
  double worst = 0;
  float where = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    double error = getUlps(outputs[i], reference(double(inputs[i])));
    if (error > worst) {
      worst = error;
      where = inputs[i];
    }
  }
  EXPECT_LE(worst, ulps) << "at " << where;
  size_t last = inputs.size() - 1024;
  EXPECT_EQ(std::memcmp(&scalar[0], &outputs[last], 4), 0)
      << "scalars and vectors differ";
}

std::vector<float> range(double low, double high, int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i)
    values.push_back(float(low + (high - low) * i / (count - 1)));
  return values;
}

TEST_P(MathTest, Exp) {
  auto exp = [](double x) { return std::exp(x); };
  check(GetParam(), "%y = math.exp %x : f32", range(-87, 0, 65536), exp, 2.0);
  check(GetParam(), "%y = math.exp %x : f32", range(-1e-3, 1e-3, 4096), exp,
        1.0);
  check(GetParam(), "%y = math.exp %x : f32", range(0, 88.7, 16384), exp, 2.0);
  // Results below the normal range, overflow and what is not finite.
  check(GetParam(), "%y = math.exp %x : f32", range(-104.5, -87, 16384), exp,
        2.0);
  check(GetParam(), "%y = math.exp %x : f32",
        {0.0f, -0.0f, kInf, -kInf, kNaN, -kNaN, 1e30f, -1e30f, 88.8f, 200.0f,
         -150.0f, std::numeric_limits<float>::denorm_min()},
        exp, 2.0);
}

TEST_P(MathTest, Log) {
  auto log = [](double x) { return std::log(x); };
  check(GetParam(), "%y = math.log %x : f32", range(0.3, 3, 65536), log, 2.0);
  check(GetParam(), "%y = math.log %x : f32", range(1e-30, 1e30, 4096), log,
        2.0);
  std::vector<float> powers;
  for (int e = -149; e < 128; ++e)
    for (double m : {1.0, 1.2, 1.41, 1.42, 1.99})
      powers.push_back(float(std::ldexp(m, e)));
  check(GetParam(), "%y = math.log %x : f32", powers, log, 2.0);
  check(GetParam(), "%y = math.log %x : f32",
        {0.0f, -0.0f, 1.0f, -1.0f, kInf, -kInf, kNaN}, log, 0.0);
}

TEST_P(MathTest, Log1p) {
  auto log1p = [](double x) { return std::log1p(x); };
  check(GetParam(), "%y = math.log1p %x : f32", range(-0.99, 3, 65536), log1p,
        3.0);
  std::vector<float> powers;
  for (int e = -149; e < 128; ++e)
    for (double m : {1.0, 1.3, 1.7, -1.0, -1.3})
      if (m > 0 || e < -1)
        powers.push_back(float(std::ldexp(m, e)));
  check(GetParam(), "%y = math.log1p %x : f32", powers, log1p, 3.0);
  check(GetParam(), "%y = math.log1p %x : f32",
        {0.0f, -1.0f, -2.0f, kInf, -kInf, kNaN}, log1p, 0.0);
}

TEST_P(MathTest, Softplus) {
  // As the kernels have it: max(x, 0) + log1p(exp(-|x|)).
  std::string body = R"(
          %abs = math.absf %x : f32
          %neg = arith.negf %abs : f32
          %e = math.exp %neg : f32
          %l = math.log1p %e : f32
          %zero = arith.constant 0.0 : f32
          %m = arith.maximumf %x, %zero : f32
          %y = arith.addf %m, %l : f32)";
  auto softplus = [](double x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  };
  check(GetParam(), body, range(-86, 20, 65536), softplus, 4.0);
  check(GetParam(), body, {kInf, -kInf, kNaN, 0.0f, -200.0f}, softplus, 2.0);
}

TEST_P(MathTest, SquareRoots) {
  check(
      GetParam(), "%y = math.sqrt %x : f32", range(0, 100, 8192),
      [](double x) { return std::sqrt(x); }, 0.5);
  check(
      GetParam(), "%y = math.rsqrt %x : f32", range(1e-3, 100, 8192),
      [](double x) { return 1 / std::sqrt(x); }, 1.5);
  check(
      GetParam(), "%y = math.sqrt %x : f32", {-1.0f, kNaN, kInf, 0.0f},
      [](double x) { return std::sqrt(x); }, 0.0);
}

TEST_P(MathTest, FusedMultiplyAdd) {
  check(
      GetParam(), "%y = math.fma %x, %x, %one : f32", range(-3, 3, 4096),
      [](double x) { return x * x + 1; }, 1.0);
}

INSTANTIATE_TEST_SUITE_P(Targets, MathTest, testing::ValuesIn(getTargets()),
                         getTargetName);

TEST(MathErrorsTest, OperationsOfTheLibraryAreRefused) {
  for (std::string body :
       {"%y = math.tanh %x : f32", "%y = arith.remf %x, %one : f32",
        "%y = math.powf %x, %one : f32"}) {
    std::string error = getCompileError(mathKernel(body));
    EXPECT_NE(error.find("would need a C library"), std::string::npos)
        << body << ": " << error;
  }
}

} // namespace
