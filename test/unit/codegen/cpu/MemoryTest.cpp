//===- MemoryTest.cpp - loads, stores, limits and strides -----------------===//
#include "CpuTest.h"

#include <sys/mman.h>

using namespace sinkstate::test;

namespace {

class MemoryTest : public CpuTest {};

/// Copies a tile of `type` from a to b with the given clauses.
std::string copyKernel(const std::string &type, const std::string &clauses,
                       const std::string &element = "f32") {
  return substitute(R"(
    ssk.kernel @copy(%a: !ssk.global<${E}> {ssk.name = "a"}, %b: !ssk.global<${E}> {ssk.name = "b"},
                     %at: i64 {ssk.name = "at"}, %stride: i64 {ssk.name = "stride"},
                     %limit: i64 {ssk.name = "limit"}) {
      %o = arith.index_cast %at : i64 to index
      %s = arith.index_cast %stride : i64 to index
      %n = arith.index_cast %limit : i64 to index
      %t = ssk.load %a[%o] ${C} : !ssk.global<${E}> -> ${T}
      ssk.store %t, %b[%o] ${C} : ${T}, !ssk.global<${E}>
      ssk.return
    })",
                    {{"T", type}, {"C", clauses}, {"E", element}});
}

TEST_P(MemoryTest, CopiesRowsOfEveryLength) {
  for (int64_t n : {1, 3, 16, 31, 80, 100}) {
    std::string type = "!ssk.tile<" + number(n) + "xf32, lanes = 0>";
    Kernels kernels(copyKernel(type, ""), GetParam());
    std::vector<float> a = randomVector<float>(n + 10, n), b(n + 10, 7.0f);
    kernels.run("copy", 0, 1, a.data(), b.data(), int64_t(4), int64_t(0),
                int64_t(0));
    for (int64_t i = 0; i < n + 10; ++i)
      EXPECT_EQ(b[i], i >= 4 && i < n + 4 ? a[i] : 7.0f) << n << " at " << i;
  }
}

TEST_P(MemoryTest, ElementLimitsExcludeReadsAndWrites) {
  for (std::string lanes : {", lanes = 0", ""})
    for (int64_t n : {3, 20, 100}) {
      std::string type = "!ssk.tile<" + number(n) + "xf32" + lanes + ">";
      Kernels kernels(copyKernel(type, "limit %n"), GetParam());
      std::vector<float> a = randomVector<float>(n, 5);
      for (int64_t limit : {int64_t(-3), int64_t(0), int64_t(1), n / 2, n - 1,
                            n, n + 5, int64_t(1) << 40}) {
        std::vector<float> b(n, 7.0f);
        kernels.run("copy", 0, 1, a.data(), b.data(), int64_t(0), int64_t(0),
                    limit);
        for (int64_t i = 0; i < n; ++i)
          EXPECT_EQ(b[i], i < limit ? a[i] : 7.0f) << limit << " at " << i;
      }
    }
}

TEST_P(MemoryTest, ExcludedElementsAreZeroAndUntouched) {
  // The store has no limit, so it shows what the load returned; what lies
  // behind the limit is not mapped.
  constexpr int64_t n = 100;
  std::string text = substitute(R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"},
                  %limit: i64 {ssk.name = "limit"}) {
      %c0 = arith.constant 0 : index
      %n = arith.index_cast %limit : i64 to index
      %t = ssk.load %a[%c0] limit %n : !ssk.global<f32> -> ${T}
      ssk.store %t, %b[%c0] : ${T}, !ssk.global<f32>
      ssk.return
    })",
                                {{"T", "!ssk.tile<100xf32, lanes = 0>"}});
  Kernels kernels(text, GetParam());
  size_t page = 4096;
  char *memory =
      static_cast<char *>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + page, page, PROT_NONE), 0);
  for (int64_t limit : {0, 1, 5, 37}) {
    float *a = reinterpret_cast<float *>(memory + page) - limit;
    for (int64_t i = 0; i < limit; ++i)
      a[i] = float(i + 1);
    std::vector<float> b(n, 7.0f);
    kernels.run("f", 0, 1, a, b.data(), limit);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(b[i], i < limit ? float(i + 1) : 0.0f) << limit << " at " << i;
  }
  munmap(memory, 2 * page);
}

TEST_P(MemoryTest, CopiesTwoDimensionsWithStrideAndLimit) {
  for (std::string lanes : {", lanes = 1", ", lanes = 0", ""})
    for (auto [rows, columns] :
         {std::pair<int64_t, int64_t>{3, 20}, {20, 3}, {1, 35}}) {
      std::string type = "!ssk.tile<" + number(rows) + "x" + number(columns) +
                         "xf32" + lanes + ">";
      Kernels kernels(copyKernel(type, "stride %s limit %n"), GetParam());
      int64_t stride = columns + 3;
      std::vector<float> a = randomVector<float>(2 + rows * stride, 9);
      for (int64_t limit : {int64_t(0), int64_t(1), rows - 1, rows, rows + 1}) {
        std::vector<float> b(a.size(), 7.0f);
        kernels.run("copy", 0, 1, a.data(), b.data(), int64_t(2), stride,
                    limit);
        for (int64_t i = 0; i < int64_t(a.size()); ++i) {
          int64_t row = (i - 2) / stride, column = (i - 2) % stride;
          bool inside = i >= 2 && row < rows && row < limit && column < columns;
          EXPECT_EQ(b[i], inside ? a[i] : 7.0f)
              << type << " limit " << limit << " at " << i;
        }
      }
    }
}

TEST_P(MemoryTest, ExcludedRowsAreZero) {
  std::string text = substitute(R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"},
                  %limit: i64 {ssk.name = "limit"}) {
      %c0 = arith.constant 0 : index
      %n = arith.index_cast %limit : i64 to index
      %t = ssk.load %a[%c0] limit %n : !ssk.global<f32> -> ${T}
      ssk.store %t, %b[%c0] : ${T}, !ssk.global<f32>
      ssk.return
    })",
                                {{"T", "!ssk.tile<4x20xf32, lanes = 1>"}});
  Kernels kernels(text, GetParam());
  std::vector<float> a = randomVector<float>(80, 3);
  for (int64_t limit : {0, 2, 4}) {
    std::vector<float> b(80, 7.0f);
    kernels.run("f", 0, 1, a.data(), b.data(), limit);
    for (int64_t i = 0; i < 80; ++i)
      EXPECT_EQ(b[i], i / 20 < limit ? a[i] : 0.0f);
  }
}

TEST_P(MemoryTest, MovesEveryElementType) {
  auto check = [&](auto zero, const std::string &element) {
    using T = decltype(zero);
    Kernels kernels(
        copyKernel("!ssk.tile<2x21x" + element + ", lanes = 1>", "", element),
        GetParam());
    std::vector<T> a(42), b(42);
    for (int i = 0; i < 42; ++i)
      a[i] = static_cast<T>(1000 + i * 37);
    kernels.run("copy", 0, 1, a.data(), b.data(), int64_t(0), int64_t(0),
                int64_t(0));
    EXPECT_EQ(a, b) << element;
  };
  check(double(), "f64");
  check(int32_t(), "i32");
  check(int64_t(), "i64");
  check(uint16_t(), "f16");
  check(uint16_t(), "bf16");
}

TEST_P(MemoryTest, OffsetsPassTwoToThe31) {
  // 12 GiB of address space, of which only a few pages are touched.
  constexpr int64_t kElements = int64_t(3) << 30;
  void *memory = mmap(nullptr, kElements * 4, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    GTEST_SKIP() << "no 12 GiB of address space";
  float *pool = static_cast<float *>(memory);
  int64_t stride = int64_t(1) << 30, at = 100;
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t i = 0; i < 20; ++i)
      pool[at + row * stride + i] = float(100 * row + i);
  std::string text = R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"},
                  %stride: i64 {ssk.name = "stride"}) {
      %p = ssk.program_id : index
      %c0 = arith.constant 0 : index
      %c60 = arith.constant 60 : index
      %s = arith.index_cast %stride : i64 to index
      %t = ssk.load %a[%p] stride %s : !ssk.global<f32> -> !ssk.tile<3x20xf32, lanes = 1>
      ssk.store %t, %b[%c0] : !ssk.tile<3x20xf32, lanes = 1>, !ssk.global<f32>
      %far = arith.addi %s, %s : index
      %x = arith.addi %far, %p : index
      %v = ssk.read %a[%x] : !ssk.global<f32>
      ssk.write %v, %b[%c60] : !ssk.global<f32>
      ssk.return
    })";
  Kernels kernels(text, GetParam());
  std::vector<float> b(61);
  // The program number is the offset: it is 64 bits wide, too.
  kernels.run("f", at, at + 1, pool, b.data(), stride);
  for (int64_t i = 0; i < 60; ++i)
    EXPECT_EQ(b[i], float(100 * (i / 20) + i % 20));
  EXPECT_EQ(b[60], 200.0f);
  kernels.run("f", at + 2 * stride, at + 2 * stride + 1, pool, b.data(),
              int64_t(0));
  EXPECT_EQ(b[3], 203.0f);
  munmap(memory, kElements * 4);
}

TEST_P(MemoryTest, ScratchIsFilledReadAndWritten) {
  std::string text = R"(
    ssk.kernel @f(%b: !ssk.global<f64> {ssk.name = "b"}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %v = arith.constant 1.5 : f64
      %w = arith.constant -2.5 : f64
      %s = ssk.alloc : !ssk.shared<5x21xf64>
      ssk.fill %s, %v : !ssk.shared<5x21xf64>
      ssk.write %w, %s[%c2, %c3] : !ssk.shared<5x21xf64>
      %x = ssk.read %s[%c2, %c3] : !ssk.shared<5x21xf64>
      %y = arith.addf %x, %x : f64
      ssk.write %y, %s[%c0, %c1] : !ssk.shared<5x21xf64>
      ssk.sync
      %t = ssk.load %s[%c0, %c0] : !ssk.shared<5x21xf64> -> !ssk.tile<5x21xf64, lanes = 1>
      ssk.store %t, %b[%c0] : !ssk.tile<5x21xf64, lanes = 1>, !ssk.global<f64>
      %u = ssk.load %s[%c2, %c1] : !ssk.shared<5x21xf64> -> !ssk.tile<2x3xf64>
      %c105 = arith.constant 105 : index
      ssk.store %u, %b[%c105] : !ssk.tile<2x3xf64>, !ssk.global<f64>
      ssk.return
    })";
  Kernels kernels(text, GetParam());
  std::vector<double> b(111), expected(105, 1.5);
  kernels.run("f", 0, 1, b.data());
  expected[2 * 21 + 3] = -2.5;
  expected[1] = -5.0;
  for (double x : {1.5, 1.5, -2.5, 1.5, 1.5, 1.5})
    expected.push_back(x);
  EXPECT_EQ(b, expected);
}

INSTANTIATE_TEST_SUITE_P(Targets, MemoryTest, testing::ValuesIn(getTargets()),
                         getTargetName);

} // namespace
