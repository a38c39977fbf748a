//===- MappedRangeTest.cpp - Memory behind reserved addresses -------------===//

#include "FakeCuda.h"

#include "capi/Failure.h"
#include "cuda/Memory.h"
#include "cuda/MappedRange.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;

namespace {

constexpr size_t kPage = 4096;

class Mapping : public testing::Test {
protected:
  Mapping() {
    fake_reset();
    context = Context::open(Driver::open(SS_FAKE_CUDA), 0);
    current = std::make_unique<CurrentContext>(*context);
  }
  static void fill(const MappedRange &range) {
    std::memset(reinterpret_cast<void *>(range.address()), 1,
                range.mappedBytes());
  }
  std::shared_ptr<const Context> context;
  std::unique_ptr<CurrentContext> current;
};

TEST_F(Mapping, GrowsAndShrinksInPlace) {
  const int before = fake_live_objects();
  {
    MappedRange range(context, 100 * kPage - 5);
    EXPECT_EQ(range.reservedBytes(), 100 * kPage);
    EXPECT_EQ(range.mappedBytes(), 0u);
    const CUdeviceptr address = range.address();
    EXPECT_EQ(range.additionFor(1), kPage);
    ASSERT_TRUE(range.growTo(1));
    EXPECT_EQ(range.mappedBytes(), kPage);
    ASSERT_TRUE(range.growTo(30 * kPage + 1));
    EXPECT_EQ(range.mappedBytes(), 31 * kPage);
    EXPECT_EQ(fake_live_bytes(), 31 * kPage);
    fill(range);
    ASSERT_TRUE(range.growTo(3));
    EXPECT_EQ(range.mappedBytes(), 31 * kPage);
    // Whole pieces go back: 1, 8, 8, 8, 6.
    EXPECT_EQ(range.mappedAfterShrinkTo(26 * kPage), 31 * kPage);
    range.shrinkTo(10 * kPage);
    EXPECT_EQ(range.mappedBytes(), 17 * kPage);
    EXPECT_EQ(fake_live_bytes(), 17 * kPage);
    EXPECT_EQ(*reinterpret_cast<char *>(range.address() + 17 * kPage - 1), 1);
    ASSERT_TRUE(range.growTo(100 * kPage - 5));
    fill(range);
    EXPECT_FALSE(range.growTo(100 * kPage + 1));
    range.shrinkTo(0);
    EXPECT_EQ(range.mappedBytes(), 0u);
    EXPECT_EQ(range.address(), address);
    MappedRange other = std::move(range);
    ASSERT_TRUE(other.growTo(1));
    EXPECT_EQ(other.address(), address);
  }
  EXPECT_EQ(fake_live_objects(), before);
  EXPECT_EQ(fake_live_bytes(), 0u);
}

TEST_F(Mapping, ChangesNothingWhereMemoryIsShort) {
  MappedRange range(context, 100 * kPage);
  ASSERT_TRUE(range.growTo(2 * kPage));
  fake_set_memory_limit(20 * kPage);
  EXPECT_FALSE(range.growTo(50 * kPage));
  EXPECT_EQ(range.mappedBytes(), 2 * kPage);
  EXPECT_EQ(fake_live_bytes(), 2 * kPage);
  EXPECT_TRUE(range.growTo(20 * kPage));
}

TEST_F(Mapping, LeavesNothingBehindWhereACallFails) {
  MappedRange range(context, 100 * kPage);
  const int before = fake_live_objects();
  for (const char *call : {"cuMemMap", "cuMemSetAccess", "cuMemCreate"}) {
    fake_fail(call, 1, 0, 0);
    EXPECT_THROW(range.growTo(kPage), Failure) << call;
    EXPECT_EQ(fake_live_objects(), before) << call;
    EXPECT_EQ(range.mappedBytes(), 0u);
  }
  EXPECT_TRUE(range.growTo(kPage));
}

TEST_F(Mapping, IsAllThereWhereItCannotGrow) {
  for (bool old : {false, true}) {
    fake_reset();
    if (old)
      fake_hide("cuMemCreate");
    else
      fake_set_granularity(0);
    auto plain = Context::open(Driver::open(SS_FAKE_CUDA), 0);
    CurrentContext itsOwn(*plain);
    MappedRange range(plain, 10 * kPage);
    EXPECT_EQ(range.mappedBytes(), 10 * kPage);
    EXPECT_EQ(range.additionFor(10 * kPage), 0u);
    EXPECT_TRUE(range.growTo(10 * kPage));
    range.shrinkTo(0);
    EXPECT_EQ(range.mappedBytes(), 10 * kPage);
    fill(range);
  }
}

TEST_F(Mapping, PinnedMemoryIsZeroAndShared) {
  PinnedMemory words(context, 64);
  EXPECT_EQ(*words.at<int64_t>(8), 0);
  *words.onDevice<int64_t>(8) = 7;
  EXPECT_EQ(*words.at<int64_t>(8), 7);
}

} // namespace
