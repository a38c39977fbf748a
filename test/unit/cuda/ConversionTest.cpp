//===- ConversionTest.cpp - A caller's rows on a GPU, on the host ---------===//
//
// The device's routine beside the CPU's converter, which takes numbers from
// numeric/Elements.h: the same bits for every number, type and layout.
//
//===----------------------------------------------------------------------===//

#include "engine/HostRowConverter.h"
#include "nvrtc/Nvrtc.h"

#include "capi/Failure.h"
#include "numeric/Elements.h"
#include "sinkstate/sinkstate.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <sys/mman.h>

using namespace sinkstate;
using runtime::HostRowConverter;

namespace {

/// Five arrays of different types, widths and strides, and their staging.
struct Layout {
  int32_t batch, tokens;
  int64_t width, gap, offset;
  bool wide;
  int32_t padding;
};

class Rows {
public:
  Rows(const Layout &layout, uint32_t seed) : layout(layout) {
    std::mt19937 random(seed);
    const int64_t tokenStride = layout.width + layout.gap;
    const int64_t stride = layout.tokens * tokenStride + layout.gap;
    staged.resize(size_t(ss::kMostInputs * stagedFloats() + 64));
    caller.resize(size_t(layout.batch * stride + layout.offset + 8));
    for (uint16_t &bits : caller)
      bits = uint16_t(random());
    take.slots = {slots(), 0, layout.wide, layout.padding, layout.batch, 9};
    slotRows.assign(size_t(layout.batch), 77);
    take.slot_rows = slotRows.data();
    take.faults = &faults;
    take.tokens = layout.tokens;
    take.count = ss::kMostInputs;
    for (int32_t i = 0; i < take.count; ++i)
      take.inputs[i] = {caller.data() + layout.offset,
                        aligned() + i * stagedFloats(),
                        stride,
                        tokenStride,
                        layout.width - (i % 2 ? i * 8 % layout.width : 0),
                        1 + i % 2,
                        byEight()};
  }

  int64_t stagedFloats() const {
    return (int64_t(layout.batch) * layout.tokens * layout.width + 63) / 64 * 64;
  }
  ss::RowsToTake take = {};
  std::vector<float> staged;
  std::vector<uint16_t> caller;
  std::vector<int32_t> slotRows;
  int32_t faults = 0;

private:
  /// As RowConversion decides it.
  int32_t byEight() const {
    return layout.width % 8 == 0 && layout.gap % 8 == 0 && layout.offset % 8 == 0;
  }
  float *aligned() {
    const auto address = reinterpret_cast<uintptr_t>(staged.data());
    return staged.data() + (256 - address % 256) % 256 / 4;
  }
  const void *slots() {
    for (int32_t row = 0; row < layout.batch; ++row) {
      const int32_t slot = row % 3 == 1 ? layout.padding == 0 ? -1 - row : 0
                                        : 1 + row % 8;
      narrowSlots.push_back(slot);
      wideSlots.push_back(slot);
    }
    return layout.wide ? static_cast<const void *>(wideSlots.data())
                       : narrowSlots.data();
  }

  Layout layout;
  std::vector<int32_t> narrowSlots;
  std::vector<int64_t> wideSlots;
};

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const auto &[batch, tokens] : {std::pair(1, 1), {3, 1}, {7, 4}})
    for (int64_t width : {1, 7, 8, 40, 256, 264, 1000, 2056})
      for (int64_t gap : {0, 3, 8})
        for (int64_t offset : {0, 1, 8})
          for (const auto &[wide, padding] :
               {std::pair(false, 0), {true, 1}, {true, 2}, {true, 0}})
            all.push_back({batch, tokens, width, gap, offset, wide, padding});
  return all;
}

TEST(CudaConversion, TakesInTheBitsOfTheCpu) {
  const HostRowConverter cpu(256);
  uint32_t seed = 0;
  for (const Layout &layout : layouts()) {
    Rows gpu(layout, seed), host(layout, seed);
    cpu.take(host.take, nullptr);
    const int64_t threads = std::array{32, 96, 4096}[seed++ % 3];
    for (int64_t thread = 0; thread < threads; ++thread)
      ss::take_rows(gpu.take, thread, threads);
    ASSERT_EQ(gpu.slotRows, host.slotRows);
    ASSERT_EQ(gpu.faults, 0);
    for (int32_t i = 0; i < ss::kMostInputs; ++i)
      ASSERT_EQ(std::memcmp(gpu.take.inputs[i].staged,
                            host.take.inputs[i].staged,
                            size_t(gpu.stagedFloats()) * sizeof(float)),
                0)
          << "width " << layout.width << " gap " << layout.gap << " input " << i;
  }
}

TEST(CudaConversion, GivesTheBitsOfTheCpuAndTouchesNothingElse) {
  const HostRowConverter cpu(256);
  uint32_t seed = 0;
  for (const Layout &layout : layouts()) {
    Rows gpu(layout, seed), host(layout, seed);
    std::mt19937 random(seed);
    std::vector<uint32_t> bits(size_t(gpu.stagedFloats()));
    // Numbers of all sizes, most of them within the range of f16.
    for (uint32_t &b : bits)
      b = random() % 4 ? uint32_t(random() % 2 << 31) + 0x30000000u +
                             uint32_t(random() % 0x18000000)
                       : uint32_t(random());
    for (Rows *rows : {&gpu, &host})
      std::memcpy(rows->take.inputs[0].staged, bits.data(), bits.size() * 4);
    auto give = [&](Rows &rows) {
      ss::RowsToGive give = {rows.take.inputs[0], layout.batch, layout.tokens};
      give.y.type = 1 + int32_t(seed % 2);
      return give;
    };
    cpu.give(give(host), nullptr);
    const int64_t threads = std::array{32, 96, 4096}[seed % 3];
    for (int64_t thread = 0; thread < threads; ++thread)
      ss::give_rows(give(gpu), thread, threads);
    ASSERT_EQ(gpu.caller, host.caller) << layout.width << " " << layout.gap;
    ++seed;
  }
}

// A slot that int32 would turn into one of the engine's is none.
TEST(CudaConversion, UnknownSlotsArePaddingAndAFault) {
  Layout layout = {3, 1, 16, 0, 0, true, SS_PADDING_VALUE};
  for (int64_t bad : {int64_t(9), int64_t(-1), (int64_t(1) << 32) + 1}) {
    Rows rows(layout, 1);
    const int64_t slots[] = {4, bad, 0};
    rows.take.slots.slots = slots;
    rows.take.slots.padding_value = 0;
    for (int64_t thread = 0; thread < 64; ++thread)
      ss::take_rows(rows.take, thread, 64);
    EXPECT_EQ(rows.slotRows, (std::vector<int32_t>{4, -1, -1}));
    EXPECT_EQ(rows.faults, ss::kSlotUnknown);
    for (int i = 0; i < 16; ++i)
      EXPECT_EQ(rows.take.inputs[0].staged[16 + i], 0.0f);
    EXPECT_THROW(HostRowConverter(256).take(rows.take, nullptr),
                 runtime::Failure);
  }
}

/// Addresses without memory behind them, but where they are touched.
struct Sparse {
  explicit Sparse(size_t bytes) : bytes(bytes) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Sparse() { munmap(memory, bytes); }
  size_t bytes;
  void *memory;
};

TEST(CudaConversion, OffsetsGoBeyondTwoGigabytes) {
  constexpr int64_t kStride = (int64_t(1) << 31) + 8, kTokens = 2, kWidth = 8;
  constexpr int64_t kTokenStride = (int64_t(1) << 30) + 8;
  const Sparse sparse(size_t((2 * kStride + kTokenStride + kWidth) * 2));
  ASSERT_NE(sparse.memory, MAP_FAILED);
  auto *bits = static_cast<uint16_t *>(sparse.memory);
  alignas(32) float staged[3 * kTokens * kWidth] = {};
  const ss::ConvertedArray array = {bits, staged, kStride, kTokenStride, kWidth,
                                    SS_ELEMENT_BF16, 1};
  for (int64_t i = 0; i < 3 * kTokens; ++i)
    bits[i / kTokens * kStride + i % kTokens * kTokenStride + 5] =
        numeric::BF16::narrow(float(i + 1));
  const int32_t slots[] = {0, 1, 2};
  int32_t slotRows[3], faults = 0;
  ss::RowsToTake take = {{slots, 0, 0, 0, 3, 3}, slotRows, &faults, kTokens, 1,
                         {array}};
  for (int64_t thread = 0; thread < 64; ++thread)
    ss::take_rows(take, thread, 64);
  for (int64_t i = 0; i < 3 * kTokens; ++i)
    EXPECT_EQ(staged[i * kWidth + 5], float(i + 1));
  for (float &x : staged)
    x += 0.5f;
  const ss::RowsToGive give = {array, 3, kTokens};
  for (int64_t thread = 0; thread < 64; ++thread)
    ss::give_rows(give, thread, 64);
  for (int64_t i = 0; i < 3 * kTokens; ++i)
    EXPECT_EQ(numeric::BF16::widen(bits[i / kTokens * kStride +
                                        i % kTokens * kTokenStride + 5]),
              float(i) + 1.5f);
}

// More parts than 32 bits count, of which a few are done.
TEST(CudaConversion, CountsPartsIn64Bits) {
  ss::RowsToTake take = {};
  take.slots.batch = 1 << 20;
  take.tokens = 1 << 10;
  take.count = 2;
  take.inputs[0].width = 4096, take.inputs[1].width = 40;
  EXPECT_EQ(ss::part_count(take), (int64_t(1) << 30) * 17);
}

TEST(CudaConversion, KernelsCompileForGpus) {
  auto library = nvrtc::Library::open("");
  if (!library)
    GTEST_SKIP() << library.error();
  const std::string folder = SS_SOURCE_DIR "/runtime/src/cuda/device/";
  auto text = [&](const std::string &name) {
    std::ifstream file(folder + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (const char *architecture : {"sm_80", "sm_90", "sm_100"}) {
    auto cubin = (*library)->compile(
        {"conversion.cu", text("conversion.cuh"),
         {{"cuda/device/elements.cuh", text("elements.cuh")}}, architecture,
         nvrtc::kernelFlags()});
    ASSERT_TRUE(cubin) << cubin.error();
    EXPECT_EQ(cubin->substr(1, 3), "ELF"); // the real compiler's
  }
}

} // namespace
