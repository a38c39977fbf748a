//===- SvgTest.cpp - The heat map -----------------------------------------===//

#include "Svg.h"

#include <gtest/gtest.h>

using namespace ss_run;

namespace {

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Svg, DrawsRowsAxesAndLegend) {
  RankHistory history;
  history.layers = {{"gdn", 0, 2, 128}, {"kda", 2, 1, 128}};
  for (int step = 0; step < 1000; ++step)
    history.steps.push_back({step / 10, 5, step < 500 ? 3 : -1});
  const std::string svg = drawRanks(history, "a < b & c");
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  for (const char *part :
       {"Stored rank of every state over time", "a &lt; b &amp; c",
        "layer 0 gdn  head 0", ">head 1<", "layer 2 kda  head 0",
        "tokens decoded", ">1000<", "stored rank", ">99<", "held dense",
        "prefers-color-scheme: dark", "<path class=\"d\""})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
  EXPECT_LT(svg.size(), 30000u);
}

TEST(Svg, DrawsOneStepAndNoRank) {
  RankHistory history;
  history.layers = {{"gdn", 0, 1, 128}};
  history.steps = {{0}};
  const std::string svg = drawRanks(history, "\xff\x01");
  EXPECT_NE(svg.find(">\xef\xbf\xbd <"), std::string::npos);
  EXPECT_NE(svg.find("<path class=\"c0\""), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

} // namespace
