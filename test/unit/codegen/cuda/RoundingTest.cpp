//===- RoundingTest.cpp - Stochastic rounding, on both back ends ----------===//
//
// One kernel rounds 96 numbers as a row and as four rows of 24. Both back ends
// give the same bits; every result is a neighbour of its input, the mean over
// many positions is the input, and the bits depend on all that they should.
//
//===----------------------------------------------------------------------===//
#include "../../numeric/FloatFormat.h"
#include "HostKernels.h"

#include "codegen/cpu/CpuCodegen.h"
#include "dialect/ssk/SSKDialect.h"
#include "passes/ss-to-ssk/StateTables.h"
#include "sinkstate/cpu_routines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

constexpr int64_t kRows = 4, kColumns = 24, kElements = kRows * kColumns;
constexpr int64_t kRow = 5, kColumn = 7; ///< of the single row's first element

/// What bits depend on, beside head (the program), row and element.
struct Place {
  int64_t request = 0, position = 0;
  int32_t layer = 0;
};

/// The kernel of one storage. Results are f32, so that no second rounding hides
/// what the first one did.
class RoundingKernel {
public:
  explicit RoundingKernel(ss::Storage storage)
      : module("ssk.kernel @round_rows(%a: !ssk.global<f32> {ssk.name = \"a\"}, "
               "%single: !ssk.global<f32> {ssk.name = \"single\"}, "
               "%rows: !ssk.global<f32> {ssk.name = \"rows\"}, "
               "%request: i64 {ssk.name = \"request\"}, "
               "%position: i64 {ssk.name = \"position\"}, "
               "%layer: i32 {ssk.name = \"layer\"}) "
               "attributes {programs_per_block = 1 : i64} { ssk.return }\n",
               "builtin.module()") {
    for (ssk::KernelOp kernel : module.get().getOps<ssk::KernelOp>())
      build(kernel, storage);
    module.prepare();
    auto made = cpu::CpuJit::compile(module.get());
    if (made)
      jit = std::move(*made);
    else
      ADD_FAILURE() << llvm::toString(made.takeError());
  }

  struct Results {
    std::vector<float> single, rows;
    bool operator==(const Results &) const = default;
  };

  /// One head's results, [kElements] each.
  Results run(const std::vector<float> &inputs, const Place &place,
              int64_t heads = 1, const EmulatedKernels *emulated = nullptr) {
    Results results{std::vector<float>(size_t(heads * kElements)),
                    std::vector<float>(size_t(heads * kElements))};
    const float *a = inputs.data();
    float *single = results.single.data(), *rows = results.rows.data();
    const void *arguments[] = {&a,
                               &single,
                               &rows,
                               &place.request,
                               &place.position,
                               &place.layer};
    if (emulated)
      emulated->run("round_rows", arguments, heads);
    else
      jit->lookup("round_rows")(arguments, ss_cpu_routines(), 0, heads);
    return results;
  }

  PreparedModule module;

private:
  static void build(ssk::KernelOp kernel, ss::Storage storage) {
    mlir::Block &body = kernel.getBody().front();
    mlir::OpBuilder b(body.getTerminator());
    KernelBuilder k(b, kernel, kernel.getLoc());
    mlir::Value head = ssk::ProgramIdOp::create(b, kernel.getLoc());
    StochasticRounding rounding(
        k, storage,
        StochasticRounding::mixKey(k, body.getArgument(3), body.getArgument(4),
                                   body.getArgument(5), head));
    mlir::Value to = k.mul(head, k.index(kElements));
    mlir::Value row = k.load(k.lanes({kElements}), body.getArgument(0),
                             k.index(0));
    k.store(rounding.round(row, k.index(kRow), kColumn), body.getArgument(1),
            to);
    mlir::Value stride = k.index(kColumns);
    mlir::Value rows = k.load(k.lanes({kRows, kColumns}), body.getArgument(0),
                              k.index(0), stride);
    k.store(rounding.round(rows, k.index(0), 0), body.getArgument(2), to,
            stride);
  }

  std::unique_ptr<cpu::CpuJit> jit;
};

struct Case {
  const char *name;
  ss::Storage storage;
  FloatFormat format;
  float scale; ///< that elements are stored times
};

class RandomRounding : public testing::TestWithParam<Case> {
protected:
  /// Numbers of all sizes that rows have, subnormal ones of the storage too.
  static std::vector<float> inputs() {
    std::mt19937 generator(3);
    std::uniform_real_distribution<float> size(-26, 0), sign(-1, 1);
    std::vector<float> all(kElements);
    for (float &x : all)
      x = std::copysign(std::exp2(size(generator)), sign(generator));
    const float special[] = {0.0f,    -0.0f,  1.0f, -0.5f, 0x1p-14f,
                             0x1p-6f, 1e-41f, -1e-30f};
    std::copy(std::begin(special), std::end(special), all.begin());
    return all;
  }

  /// The neighbours of a number among those of the storage.
  static std::pair<float, float> neighbours(float x) {
    const Case &c = GetParam();
    float down = 0, up = INFINITY;
    const float magnitude = std::fabs(x) * c.scale;
    for (int bits = 0; bits < c.format.count() / 2; ++bits) {
      const float value = c.format.decode(uint16_t(bits));
      if (value <= magnitude)
        down = std::max(down, value);
      if (value >= magnitude)
        up = std::min(up, value);
    }
    return {down / c.scale, up / c.scale};
  }
};

TEST_P(RandomRounding, HasTheSameBitsOnBothBackEnds) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  RoundingKernel kernel(GetParam().storage);
  const EmulatedKernels emulated(kernel.module);
  const Place places[] = {{0, 0, 0}, {-1, 1ll << 40, 95}, {12345678901234, 7, INT32_MAX}};
  for (const Place &place : places)
    EXPECT_EQ(kernel.run(inputs(), place, 3),
              kernel.run(inputs(), place, 3, &emulated))
        << place.position;
}

TEST_P(RandomRounding, ChoosesAmongNeighboursAndKeepsTheMean) {
  RoundingKernel kernel(GetParam().storage);
  const std::vector<float> x = inputs();
  constexpr int kTrials = 4000;
  std::vector<double> sums(kElements), rowSums(kElements);
  std::vector<std::pair<float, float>> near;
  for (float each : x)
    near.push_back(neighbours(each));
  for (int trial = 0; trial < kTrials; ++trial) {
    const RoundingKernel::Results results = kernel.run(x, {1, trial, 2});
    for (size_t i = 0; i < x.size(); ++i)
      for (const auto *result : {&results.single, &results.rows}) {
        const float magnitude = std::fabs((*result)[i]);
        ASSERT_TRUE(magnitude == near[i].first || magnitude == near[i].second)
            << x[i] << " became " << (*result)[i];
        ASSERT_EQ(std::signbit((*result)[i]), std::signbit(x[i]));
        (result == &results.single ? sums : rowSums)[i] += (*result)[i];
      }
  }
  for (size_t i = 0; i < x.size(); ++i) {
    // Five standard deviations of a mean of coins, and what f32 cannot add to
    // the storage's smallest normal number.
    const double step = double(near[i].second) - near[i].first;
    const double allowed = step * (5 * 0.5 / std::sqrt(kTrials) + 0x1p-11);
    EXPECT_NEAR(sums[i] / kTrials, x[i], allowed) << x[i];
    EXPECT_NEAR(rowSums[i] / kTrials, x[i], allowed) << x[i];
  }
}

TEST_P(RandomRounding, DependsOnEveryPartOfThePlace) {
  RoundingKernel kernel(GetParam().storage);
  // One number for all elements: what differs is their place alone.
  const float halfway = (1 + neighbours(std::nextafter(1.0f, 2.0f)).second) / 2;
  const std::vector<float> x(kElements, halfway);
  const Place base{5, 6, 7};
  auto differing = [](const std::vector<float> &a, const std::vector<float> &b) {
    int count = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      count += a[i] != b[i];
    return count;
  };
  const auto first = kernel.run(x, base, 2);
  EXPECT_EQ(first, kernel.run(x, base, 2));
  for (const Place &other : {Place{6, 6, 7}, Place{5, 7, 7}, Place{5, 6, 8}}) {
    const auto second = kernel.run(x, other, 2);
    EXPECT_GT(differing(first.single, second.single), kElements / 2);
    EXPECT_GT(differing(first.rows, second.rows), kElements / 2);
  }
  auto part = [](const std::vector<float> &all, size_t begin, size_t count) {
    return std::vector<float>(all.begin() + long(begin),
                              all.begin() + long(begin + count));
  };
  // Heads, rows, and the elements of a row.
  EXPECT_GT(differing(part(first.rows, 0, kElements),
                      part(first.rows, kElements, kElements)),
            kElements / 4);
  EXPECT_GT(differing(part(first.rows, 0, kColumns),
                      part(first.rows, kColumns, kColumns)),
            kColumns / 8);
  EXPECT_GT(differing(part(first.single, 0, 48), part(first.single, 48, 48)), 8);
}

TEST_P(RandomRounding, KeepsWhatIsNotFinite) {
  RoundingKernel kernel(GetParam().storage);
  std::vector<float> x(kElements, INFINITY);
  x[1] = -INFINITY;
  x[2] = NAN;
  const auto results = kernel.run(x, {});
  for (const auto *result : {&results.single, &results.rows}) {
    EXPECT_EQ((*result)[0], INFINITY);
    EXPECT_EQ((*result)[1], -INFINITY);
    EXPECT_TRUE(std::isnan((*result)[2]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Storages, RandomRounding,
    testing::Values(Case{"f16", ss::Storage::f16, FloatFormat::f16(), 1},
                    Case{"bf16", ss::Storage::bf16, FloatFormat::bf16(), 1},
                    Case{"fp8", ss::Storage::fp8, FloatFormat::fp8(), 256}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
