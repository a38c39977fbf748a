//===- RankTraceTest.cpp - Stored ranks as a file for ss-bench ------------===//

#include "RankTrace.h"

#include <gtest/gtest.h>

using namespace ss_run;

namespace {

RankHistory history(int steps) {
  RankHistory history;
  history.layers = {{"gdn", 0, 2, 8}, {"kda", 3, 1, 8}};
  for (int step = 0; step < steps; ++step)
    history.steps.push_back({step, 100 + step, -1});
  return history;
}

TEST(RankTrace, HasALineForEveryLayer) {
  EXPECT_EQ(formatRanks(history(1), "a run,\n of one step"),
            "# stored ranks, a layer a line; -1: dense\n"
            "# a run,  of one step\n"
            "gdn 0 100\nkda -1\n");
}

TEST(RankTrace, TakesTheLastHalfSparsely) {
  EXPECT_EQ(formatRanks(history(64), ""),
            "# stored ranks, a layer a line; -1: dense\n# \n"
            "gdn 47 147\nkda -1\ngdn 63 163\nkda -1\n");
}

} // namespace
