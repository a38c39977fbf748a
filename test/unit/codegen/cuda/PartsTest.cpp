//===- PartsTest.cpp - sums of parts by one warp and by several -----------===//
//
// A kernel with parts is printed as two: one warp runs all parts, or a block has a warp
// for each. Both must give the same bits, whichever warp is ahead, and those of the CPU
// where no reduction comes in between.
//
//===----------------------------------------------------------------------===//
#include "HostKernels.h"

#include "WarpEmulator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace sinkstate::test;

namespace {

/// Two sums of 40 elements over `parts` parts of the rows of x; what the bodies yield is
/// for the test to say. %t and %u are two rows of the part; %out is from outside.
std::string getKernel(int parts, const std::string &yielded, const std::string &lastYielded) {
  const std::string tile = "!ssk.tile<40xf32, lanes = 0>", types = tile + ", " + tile;
  return R"(ssk.kernel @sums(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"})
    attributes {programs_per_block = 1 : i64} {
  %p = ssk.program_id : index
  %c40 = arith.constant 40 : index
  %c80 = arith.constant 80 : index
  %first = arith.muli %p, %c80 : index
  %second = arith.addi %first, %c40 : index
  %out = ssk.load %x[%first] : !ssk.global<f32> -> )" + tile + R"(
  %sums:2 = ssk.parts )" + std::to_string(parts) + R"( {
  ^bb0(%part: index):
    %n = arith.addi %part, %p : index
    %at = arith.muli %n, %c80 : index
    %next = arith.addi %at, %c40 : index
    %t = ssk.load %x[%at] : !ssk.global<f32> -> )" + tile + R"(
    %u = ssk.load %x[%next] : !ssk.global<f32> -> )" + tile + R"(
    ssk.yield_part )" + yielded + " : " + types + R"(
  } last {
  ^bb0(%a: )" + tile + ", %b: " + tile + R"():
    %more = ssk.map (%a, %b) dims [[0], [0]] : ()" + types + ") -> " + tile + R"( {
    ^bb0(%e: f32, %f: f32):
      %m = arith.mulf %e, %f : f32
      ssk.yield %m : f32
    }
    ssk.yield_part )" + lastYielded + " : " + types + R"(
  } : )" + types + R"(
  ssk.store %sums#0, %y[%first] : )" + tile + R"(, !ssk.global<f32>
  ssk.store %sums#1, %y[%second] : )" + tile + R"(, !ssk.global<f32>
  ssk.return
})";
}

struct Yields {
  const char *each, *last;
};

class Parts : public testing::TestWithParam<std::tuple<int, Yields>> {};

TEST_P(Parts, AddUpToTheSameBits) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  const auto &[parts, yields] = GetParam();
  PreparedModule module(getKernel(parts, yields.each, yields.last));
  ASSERT_TRUE(module);
  BothBackEnds both(module);
  constexpr int programs = 3;
  std::vector<float> x(80 * (programs + parts)), y(80 * programs);
  std::mt19937 generator(7);
  // Of many sizes, so that every order of additions has other bits.
  std::lognormal_distribution<float> sizes(0, 4);
  for (float &value : x)
    value = generator() % 2 ? sizes(generator) : -sizes(generator);
  for (int order : {0, 1, 2}) {
    std::vector<float> cpu = y, one = y, all = y;
    const void *in = x.data();
    void *cpuOut = cpu.data(), *oneOut = one.data(), *allOut = all.data();
    both.run("sums", {&in, &cpuOut}, {&in, &oneOut}, programs, order);
    std::vector<const void *> args = {&in, &allOut};
    both.getEmulated().run("sums_parts", args.data(), programs, order);
    EXPECT_EQ(std::memcmp(one.data(), all.data(), sizeof(float) * y.size()), 0) << order;
    EXPECT_EQ(std::memcmp(one.data(), cpu.data(), sizeof(float) * y.size()), 0) << order;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Yields, Parts,
    testing::Combine(testing::Values(2, 4, 7),
                     // Values that change places, or are yielded twice or from outside,
                     // may not share the sums' variables.
                     testing::Values(Yields{"%t, %u", "%a, %b"}, Yields{"%t, %u", "%b, %a"},
                                     Yields{"%u, %t", "%more, %b"}, Yields{"%t, %t", "%a, %more"},
                                     Yields{"%out, %u", "%b, %out"},
                                     Yields{"%t, %out", "%more, %more"})));

//===----------------------------------------------------------------------===//
// The emulated block
//===----------------------------------------------------------------------===//

/// What warp 0 reads of the others' numbers, with and without a meeting in between.
std::vector<int> exchange(LaneOrder order, bool meets) {
  std::vector<int> shared(4, -1), seen;
  EXPECT_TRUE(runBlock(order, 4, [&] {
    const int warp = threadIdx.x >> 5;
    if (currentLane() == 0)
      shared[warp] = warp;
    if (meets)
      __syncthreads();
    else
      __syncwarp();
    if (warp > 0)
      return;
    if (currentLane() == 0)
      seen = shared;
    __syncwarp();
  }));
  return seen;
}

TEST(EmulatedBlock, MeetsAtSyncthreads) {
  for (LaneOrder order : {LaneOrder::Ascending, LaneOrder::Descending, LaneOrder::Shuffled})
    EXPECT_EQ(exchange(order, true), (std::vector<int>{0, 1, 2, 3}));
}

TEST(EmulatedBlock, ShowsAMissingSyncthreadsByTheOrder) {
  EXPECT_NE(exchange(LaneOrder::Ascending, false), exchange(LaneOrder::Descending, false));
}

TEST(EmulatedBlock, ReportsLanesThatMissIt) {
  EXPECT_FALSE(runBlock(LaneOrder::Ascending, 2, [] {
    if (currentLane() < 16)
      __syncthreads();
    else
      __syncwarp();
  }));
}

} // namespace
