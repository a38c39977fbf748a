//===- ResourceTableTest.cpp - What kernels take, recorded and found ------===//

#include "ResourceTable.h"

#include <gtest/gtest.h>

using namespace ss_kernels;

namespace {

ResourceTable sample() {
  ResourceTable table;
  table.nvrtc = "13.0";
  table.kernels["decode"]["sm_80"] = {80, 0, 0, 512};
  table.kernels["decode"]["sm_90a"] = {72, 0, 0, 512};
  table.kernels["compact"]["sm_80"] = {255, 40, 16, 4096};
  return table;
}

TEST(ResourceTable, IsReadAsItWasWritten) {
  auto read = ResourceTable::parse(sample().print());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->nvrtc, "13.0");
  EXPECT_EQ(read->kernels, sample().kernels);
  EXPECT_EQ(read->print(), sample().print());
}

TEST(ResourceTable, RejectsOtherFiles) {
  for (const char *text :
       {"", "[]", "{\"format\": \"other\"}",
        "{\"format\": \"sinkstate-kernel-resources\", "
        "\"version\": 1, \"kernels\": {\"a\": {\"b\": []}}}"})
    EXPECT_FALSE(ResourceTable::parse(text)) << text;
}

TEST(ResourceTable, TheSameCompilerGivesTheSameNumbers) {
  ResourceTable found = sample();
  EXPECT_TRUE(compare(sample(), found).empty());
  found.kernels["decode"]["sm_80"].registers = 79;
  const auto lines = compare(sample(), found);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "decode sm_80: found 79 registers, 0 bytes spilled, 0 "
                      "bytes stack, 512 bytes shared, recorded 80 registers, 0 "
                      "bytes spilled, 0 bytes stack, 512 bytes shared by NVRTC "
                      "13.0");
}

TEST(ResourceTable, AnotherCompilerStaysWithinBounds) {
  auto differs = [](Resources use) {
    ResourceTable found = sample();
    found.nvrtc = "12.4";
    found.kernels["decode"]["sm_80"] = use;
    return !compare(sample(), found).empty();
  };
  EXPECT_FALSE(differs({60, 0, 0, 512}));
  EXPECT_FALSE(differs({98, 0, 0, 512}));
  EXPECT_TRUE(differs({99, 0, 0, 512})) << "80 + 10 + 8";
  EXPECT_TRUE(differs({80, 4, 0, 512})) << "nothing was spilled";
  EXPECT_TRUE(differs({80, 0, 8, 512}));
  EXPECT_TRUE(differs({80, 0, 0, 516})) << "shared memory is the source's";
}

TEST(ResourceTable, NamesWhatIsMissing) {
  ResourceTable found = sample();
  found.kernels.erase("compact");
  found.kernels["densify"]["sm_80"] = {20, 0, 0, 0};
  EXPECT_EQ(compare(sample(), found),
            (std::vector<std::string>{
                "densify sm_80: is not recorded",
                "compact: is recorded, but there is no such kernel"}));
}

} // namespace
