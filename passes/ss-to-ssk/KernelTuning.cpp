//===- KernelTuning.cpp - what a device asks of kernels -------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "KernelTuning.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace llvm;

namespace sinkstate {

namespace {
/// Which kernels a row is for.
enum class Kernels {
  all,
  decodeWithoutDelta, ///< these of factored states
  decodeChannels,     ///< with a decay per key channel
  decodeDelta,
  compactSmall, ///< without the delta rule, blocks of up to 16 components
  compactChannels, ///< such blocks with a decay per key channel
  initWide, ///< whose Gram matrix leaves room for one block
  init
};

/// The elements of the rows that it is for.
enum class Elements { any, f32, narrow };

struct Row {
  StringLiteral device;
  Kernels kernels;
  Elements elements;
  KernelTuning tuning;
};
} // namespace

// The first row that fits holds. docs/rationale.md, "What was measured and
// dropped" and "Decode with little of the first cache", has the figures and how
// they were taken.
static const Row kRows[] = {
    {"cpu",
     Kernels::all,
     Elements::any,
     {1, 1, 1, std::nullopt,
      "one row at a time leaves the vector registers to the sums; the next "
      "state's memory is asked for meanwhile",
      /*asksAhead=*/true, /*formsKept=*/true}},
    {"sm_90",
     Kernels::decodeWithoutDelta,
     Elements::f32,
     {4, 1, 2, 32,
      "four rows in 64 registers and 32 resident blocks: 75 to 70 us on an H200 "
      "(B = 128, ranks nemo4b), 72 with 24; two warps a state 10.9 to 9.3 us at "
      "B = 8, four 9.5"}},
    {"sm_90",
     Kernels::decodeWithoutDelta,
     Elements::narrow,
     {4, 1, 2, 24,
      "four rows and 24 resident blocks: 54 to 45 us on an H200 in f16 (B = 128, "
      "ranks nemo4b), 63 to 34 in fp8; 28 and 32 blocks 2 to 8 % slower, or "
      "spills"}},
    {"sm_90",
     Kernels::decodeChannels,
     Elements::f32,
     {4, 1, 4, 20,
      "left alone, the GPU's compiler serialises the loads: 57.7 to 47.3 us on "
      "an H200 with 20 or 24 resident blocks (B = 128, ranks qwen9b); eight rows "
      "1 to 4 % slower; four warps a state 16.8 to 9.5 us at B = 8"}},
    {"sm_90",
     Kernels::decodeChannels,
     Elements::narrow,
     {4, 1, 4, 24,
      "24 resident blocks: 33.7 us in f16 and 28.2 in fp8 on an H200 (B = 128, "
      "ranks qwen9b), with 20 34.0 and 29.7"}},
    {"sm_90",
     Kernels::decodeDelta,
     Elements::any,
     {4, 1, 4, 24,
      "four rows hide the latency of memory; 24 resident blocks 46 to 44 us on an "
      "H200 (B = 128, ranks qwen9b), as 32 share the first cache; eight rows of "
      "16 or 8 bits gain 0 to 2 %, and lose 7 % at B = 32; four warps a state "
      "19.4 to 8.9 us at B = 8"}},
    {"sm_90",
     Kernels::compactSmall,
     Elements::narrow,
     {4, 1, 1, 16,
      "as in f32, and products and orthogonalisation at every use: what compactions "
      "add to a step 28.8 to 24.6 us on an H200 (B = 128, ranks nemo4b, f16), "
      "products alone 24.9",
      /*asksAhead=*/false, /*formsKept=*/false, /*warps=*/1,
      /*repeatsOrthogonalize=*/true, /*repeatsMatmul=*/true}},
    {"sm_90",
     Kernels::compactSmall,
     Elements::any,
     {4, 1, 1, 16,
      "128 registers instead of 168 leave more to the decodes that run beside "
      "it: 2 to 5 % of a step on an H200 (B = 128, ranks nemo4b); under the "
      "delta rule 1 to 4 % slower"}},
    {"sm_90",
     Kernels::compactChannels,
     Elements::any,
     {4, 1, 1, std::nullopt,
      "products at every use: what compactions add to a step 11.1 to 10.5 us on an "
      "H200 (B = 128, ranks qwen9b, f32), in f16 19.8 to 19.1; orthogonalisation "
      "too 13.5 and 19.4; others of the delta rule call both: 2.8 instead of 3.6 to "
      "4.0 (gdn), in f16 8.0 instead of 11.1 to 12.1",
      /*asksAhead=*/false, /*formsKept=*/false, /*warps=*/1,
      /*repeatsOrthogonalize=*/false, /*repeatsMatmul=*/true}},
    {"sm_90",
     Kernels::initWide,
     Elements::any,
     {4, 1, 1, 2,
      "the scratch of two blocks fits a multiprocessor; eight warps each have "
      "the registers for it (with one block: 258,048 states of 128 x 128 in 328 "
      "ms on an H200 with eight warps, 433 with four)",
      /*asksAhead=*/false, /*formsKept=*/false, /*warps=*/8}},
    {"sm_90",
     Kernels::init,
     Elements::any,
     {4, 1, 1, 5,
      "the scratch of five blocks fits a multiprocessor of an H200, and four "
      "warps each have 96 registers then; two warps or six are not predicted to be "
      "faster",
      /*asksAhead=*/false, /*formsKept=*/false, /*warps=*/4}},
    {"sm_90",
     Kernels::all,
     Elements::any,
     {4, 1, 1, std::nullopt,
      "four rows hide the latency of memory; with one warp a block none waits "
      "for the largest state: 2 to 6 % faster on an H200 than four warps"}},
};

ArrayRef<StringLiteral> getTunedDevices() {
  static const StringLiteral devices[] = {"cpu", "sm_90"};
  return devices;
}

static bool fits(Elements elements, const LayerShape &shape) {
  return elements == Elements::any ||
         (elements == Elements::narrow) == shape.isNarrow();
}

static bool fits(Kernels kernels, StringRef role, const LayerShape &shape) {
  const bool decode = role == "decode" && shape.isFactored();
  switch (kernels) {
  case Kernels::all:
    return true;
  case Kernels::decodeWithoutDelta:
    return decode && !shape.delta;
  case Kernels::decodeChannels:
    return decode && shape.channelDecay;
  case Kernels::decodeDelta:
    return decode && shape.delta;
  case Kernels::initWide:
    return role == "init" && std::min(shape.dv, shape.dk) > 96;
  case Kernels::init:
    return role == "init";
  case Kernels::compactChannels:
    return role == "compact" && shape.channelDecay && shape.block() <= 16;
  case Kernels::compactSmall: // larger ones would spill kilobytes
    return role == "compact" && !shape.delta && shape.block() <= 16;
  }
  llvm_unreachable("every kind of kernel is handled");
}

KernelTuning getKernelTuning(StringRef device, StringRef role,
                             const LayerShape &shape) {
  for (const Row &row : kRows)
    if (row.device == device && fits(row.kernels, role, shape) &&
        fits(row.elements, shape)) {
      KernelTuning tuning = row.tuning;
      // Other kernels of layers without the delta rule read one row at a time,
      // and have the registers for twice as many.
      const bool isDecode = role == "decode" && shape.isFactored();
      if (!shape.delta && !isDecode && tuning.rowsInFlight == 4)
        tuning.rowsInFlight = 8;
      return tuning;
    }
  llvm::report_fatal_error("a device has no row in KernelTuning.cpp");
}

StepBytes countStepBytes(const LayerShape &shape, int64_t components,
                         int64_t buffer) {
  const double width = double(shape.rowLength());
  const double row = double(shape.elementBytes()) * width + 4;
  const double decays = shape.channelDecay ? double(shape.dk) : 1;
  const double perHead = double(shape.dk) / double(shape.group());
  const double pairs = (double(buffer) - 1) / 2 + 1; // one of them is written
  const double pair = 4 * (double(shape.dv) + decays + perHead);
  const double token =
      4 * (2 * double(shape.dv) + decays + shape.hasBeta + 2 * perHead);
  const double active =
      double(std::min<int64_t>(shape.active, components));
  return {double(components) * row + pairs * pair + token,
          2 * active * row / double(buffer) + 4 * (width + 1)};
}

std::string explainBuffer(const LayerShape &shape) {
  // About what the published models store (docs/performance.md, profiles).
  constexpr int64_t kComponents = 20;
  auto sum = [&](int64_t buffer) {
    const StepBytes bytes = countStepBytes(shape, kComponents, buffer);
    return formatv("{0:F0} + {1:F0} bytes", bytes.decode, bytes.compact).str();
  };
  return formatv("a buffer of {0} and {1} active components: with {2} stored, a "
                 "state's decode and a step's share of its compaction move {3}; "
                 "with a buffer of {4}, {5}",
                 shape.capacity, shape.active, kComponents, sum(shape.capacity),
                 2 * shape.capacity, sum(2 * shape.capacity))
      .str();
}

} // namespace sinkstate
