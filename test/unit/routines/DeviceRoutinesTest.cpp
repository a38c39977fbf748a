// What only the device routines can get wrong: synchronisation. Their results
// are checked by the same tests as those of the CPU twins.
#include "EmulatedDevice.h"
#include "Matrices.h"
#include "WarpEmulator.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace sinkstate::test;

namespace {

class DeviceRoutinesTest : public ::testing::TestWithParam<int> {};

struct Results {
  Matrix t, r, xt, yt;
  Vector sigma;
  int32_t orthogonalizeStatus, svdStatus;
};

Results run(LaneOrder order, int m, const Matrix &rows) {
  Results r{Matrix(m, m), rows * rows.transpose(), Matrix(m, m), Matrix(m, m), Vector(m), 0, 0};
  r.orthogonalizeStatus =
      emulateOrthogonalize(order, m, r.r.data(), r.t.data());
  Matrix core = rows.leftCols(m);
  r.svdStatus = emulateCoreSvd(order, m, core.data(), r.xt.data(),
                               r.sigma.data(), r.yt.data());
  return r;
}

TEST_P(DeviceRoutinesTest, ResultsDoNotDependOnTheOrderOfLanes) {
  int m = GetParam();
  Matrix rows = gaussian(m, 128, 1);
  if (m > 3)
    rows.row(3).setZero();
  if (m > 5)
    rows.row(5) = rows.row(1);
  Results first = run(LaneOrder::Ascending, m, rows);
  EXPECT_EQ(first.orthogonalizeStatus, 0);
  EXPECT_EQ(first.svdStatus, 0);
  for (LaneOrder order : {LaneOrder::Descending, LaneOrder::Shuffled}) {
    Results other = run(order, m, rows);
    EXPECT_TRUE(sameBits(first.t, other.t));
    EXPECT_TRUE(sameBits(first.r, other.r));
    EXPECT_TRUE(sameBits(first.xt, other.xt));
    EXPECT_TRUE(sameBits(first.yt, other.yt));
    EXPECT_TRUE(sameBits(first.sigma, other.sigma));
  }
}

INSTANTIATE_TEST_SUITE_P(, DeviceRoutinesTest,
                         ::testing::Values(1, 2, 7, 8, 16, 17, 24, 32, 40, 64),
                         ::testing::PrintToStringParamName());

TEST(WarpEmulatorTest, ShufflesAcrossLanes) {
  int seen[32];
  ASSERT_TRUE(runWarp(LaneOrder::Shuffled, [&] {
    int lane = threadIdx.x;
    int partner = __shfl_xor_sync(~0u, 10 * lane, 5);
    seen[lane] = partner + __shfl_sync(~0u, lane, 31);
  }));
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(seen[lane], 10 * (lane ^ 5) + 31);
}

TEST(WarpEmulatorTest, ReportsLanesThatMeetAtDifferentPlaces) {
  // Outside of the macro, which would put all of it on one line.
  auto twoPlaces = [] {
    if (threadIdx.x < 16)
      __syncwarp();
    else
      __shfl_sync(~0u, 1, 0);
  };
  EXPECT_FALSE(runWarp(LaneOrder::Ascending, twoPlaces));
  auto oneLaneStays = [] {
    if (threadIdx.x == 3)
      __syncwarp();
  };
  EXPECT_FALSE(runWarp(LaneOrder::Ascending, oneLaneStays));
}

TEST(WarpEmulatorTest, LaneOrderRevealsARace) {
  auto racy = [](LaneOrder order) {
    int shared = 0;
    EXPECT_TRUE(runWarp(order, [&] { shared = threadIdx.x; }));
    return shared;
  };
  EXPECT_NE(racy(LaneOrder::Ascending), racy(LaneOrder::Descending));
}

} // namespace
