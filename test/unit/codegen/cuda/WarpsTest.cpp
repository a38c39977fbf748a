//===- WarpsTest.cpp - programs of several warps, on both back ends -------===//

#include "HostKernels.h"

#include "dialect/ssk/SSKDialect.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Products of rows that the warps load, added up over chunks, with and without a
/// limit; a sum that one warp writes; places that each warp writes.
const char *const kText = R"(
ssk.kernel @products(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f64> {ssk.name = "y"},
                     %z: !ssk.global<f32> {ssk.name = "z"}, %n: i32 {ssk.name = "n"}) attributes {programs_per_block = 1 : i64, warps = $W : i64} {
  %p = ssk.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c20 = arith.constant 20 : index
  %c36 = arith.constant 36 : index
  %c144 = arith.constant 144 : index
  %c48 = arith.constant 48 : index
  %c960 = arith.constant 960 : index
  %c1296 = arith.constant 1296 : index
  %c2880 = arith.constant 2880 : index
  %zero = arith.constant 0.0 : f64
  %limit = arith.index_cast %n : i32 to index
  %a = ssk.alloc : !ssk.shared<20x36xf32>
  %g = ssk.alloc : !ssk.shared<36x36xf64>
  %b = ssk.alloc : !ssk.shared<20x36xf32>
  %s = ssk.alloc : !ssk.shared<1xf64>
  ssk.fill %g, %zero : !ssk.shared<36x36xf64>
  %mine = arith.muli %p, %c2880 : index
  scf.for %chunk = %c0 to %c3 step %c1 {
    %from = arith.muli %chunk, %c960 : index
    %begin = arith.addi %mine, %from : index
    scf.for %i = %c0 to %c20 step %c1 {
      %row = arith.muli %i, %c48 : index
      %at = arith.addi %begin, %row : index
      %t = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<36xf32, lanes = 0>
      ssk.store %t, %a[%i, %c0] : !ssk.tile<36xf32, lanes = 0>, !ssk.shared<20x36xf32>
    } {ssk.over_warps}
    ssk.matmul %a, %a into %g {accumulate, transpose_a} : !ssk.shared<20x36xf32>, !ssk.shared<20x36xf32>, !ssk.shared<36x36xf64>
  }
  ssk.matmul %a, %g into %b limit %limit : !ssk.shared<20x36xf32>, !ssk.shared<36x36xf64>, !ssk.shared<20x36xf32>
  %of_y = arith.muli %p, %c1296 : index
  %of_z = arith.muli %p, %c960 : index
  scf.for %i = %c0 to %c36 step %c1 {
    %row = arith.muli %i, %c36 : index
    %at = arith.addi %of_y, %row : index
    %t = ssk.load %g[%i, %c0] : !ssk.shared<36x36xf64> -> !ssk.tile<36xf64, lanes = 0>
    ssk.store %t, %y[%at] : !ssk.tile<36xf64, lanes = 0>, !ssk.global<f64>
  } {ssk.over_warps}
  scf.for %i = %c0 to %limit step %c1 {
    %row = arith.muli %i, %c48 : index
    %at = arith.addi %of_z, %row : index
    %t = ssk.load %b[%i, %c0] : !ssk.shared<20x36xf32> -> !ssk.tile<36xf32, lanes = 0>
    ssk.store %t, %z[%at] : !ssk.tile<36xf32, lanes = 0>, !ssk.global<f32>
  } {ssk.over_warps}
  %corner = ssk.read %g[%c3, %c1] : !ssk.shared<36x36xf64>
  ssk.write %corner, %s[%c0] : !ssk.shared<1xf64>
  %again = ssk.read %s[%c0] : !ssk.shared<1xf64>
  %narrow = arith.truncf %again : f64 to f32
  %last = arith.addi %of_z, %c36 : index
  ssk.write %narrow, %z[%last] : !ssk.global<f32>
  ssk.return
}
)";

std::string withWarps(int warps) {
  std::string text = kText;
  return text.replace(text.find("$W"), 2, std::to_string(warps));
}

struct Outputs {
  std::vector<double> y = std::vector<double>(2 * 1296, -1);
  std::vector<float> z = std::vector<float>(2 * 960, -1);
  bool operator==(const Outputs &) const = default;
};

TEST(Warps, AnyNumberInAnyOrderGivesTheSame) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  std::vector<float> x(2 * 2880);
  std::mt19937 random(3);
  for (float &e : x)
    e = float(int(random() % 2001) - 1000) / 1000;
  std::map<int32_t, Outputs> first;
  for (int warps : {1, 2, 5}) {
    PreparedModule module(withWarps(warps), "builtin.module(canonicalize)");
    module.prepare();
    BothBackEnds both(module);
    for (int32_t n : {0, 7, 16, 20})
      for (int order : {0, 1, 2}) {
        Outputs cpu, cuda;
        const float *xs = x.data();
        const double *ys[] = {cpu.y.data(), cuda.y.data()};
        const float *zs[] = {cpu.z.data(), cuda.z.data()};
        both.run("products", {&xs, &ys[0], &zs[0], &n}, {&xs, &ys[1], &zs[1], &n}, 2, order);
        const Outputs &expected = first.try_emplace(n, cuda).first->second;
        EXPECT_TRUE(cuda == expected) << warps << " warps, order " << order << ", limit " << n;
        for (size_t i = 0; i < cpu.y.size(); ++i)
          ASSERT_NEAR(cpu.y[i], cuda.y[i], 1e-12) << i;
        for (size_t i = 0; i < cpu.z.size(); ++i)
          ASSERT_NEAR(cpu.z[i], cuda.z[i], 1e-4) << i;
      }
  }
}

} // namespace
