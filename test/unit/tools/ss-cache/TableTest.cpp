//===- TableTest.cpp - Text in columns ------------------------------------===//

#include "Table.h"

#include <gtest/gtest.h>

#include <sstream>

using namespace ss_cache;

TEST(Table, ColumnsAreAligned) {
  Table table("lrl");
  table.add({"KEY", "SIZE", "NOTE"});
  table.add({"a", "10", ""});
  table.add({"long name", "1", "x"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(), "KEY        SIZE  NOTE\n"
                       "a            10\n"
                       "long name     1  x\n");
}

TEST(Table, ReadableSize) {
  EXPECT_EQ(readableSize(0), "0 B");
  EXPECT_EQ(readableSize(1023), "1023 B");
  EXPECT_EQ(readableSize(1536), "1.5 KiB");
  EXPECT_EQ(readableSize(uint64_t(3) << 30), "3.0 GiB");
  EXPECT_EQ(readableSize(uint64_t(3) << 50), "3072.0 TiB");
}

TEST(Table, ReadableTimes) {
  EXPECT_EQ(readableTime(0), "1970-01-01 00:00:00Z");
  EXPECT_EQ(readableAge(100, 159), "now");
  EXPECT_EQ(readableAge(100, 160), "1 min");
  EXPECT_EQ(readableAge(0, 7200), "2 h");
  EXPECT_EQ(readableAge(0, 3 * 86400), "3 d");
  EXPECT_EQ(readableAge(100, 0), "now") << "a clock that was set back";
}

TEST(Table, Printable) { EXPECT_EQ(printable("a\033[2Jb\n"), "a?[2Jb?"); }
