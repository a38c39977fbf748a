//===- TimePlotTest.cpp - Time against batch size as a picture ------------===//

#include "TestLayers.h"
#include "TimePlot.h"

#include <gtest/gtest.h>

using namespace ss_bench;

namespace {

TEST(TimePlot, DrawsOursAndTheDenseOnes) {
  const std::string svg = drawTimes(
      someResult(), *Baselines::parse(kBaselineLines, "times"));
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  for (const char *part :
       {"some&lt;model&gt;, ranks uniform:8, a GPU",
        ">decode and compaction, synthetic<", ">decode alone, synthetic<",
        ">own dense<", ">fla_gdn f32<", "requests in a batch", ">100<", ">8<",
        "stroke-dasharray", "prefers-color-scheme: dark"})
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\n" << svg;
}

TEST(TimePlot, DrawsNothingToo) {
  const std::string svg = drawTimes({}, {});
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
}

} // namespace
