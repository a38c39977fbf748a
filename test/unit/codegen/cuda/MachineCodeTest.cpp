//===- MachineCodeTest.cpp - What only the machine code of kernels shows ------------===//
//
// A decode by parts may begin beside the end of the kernel before it and waits for that
// before it touches what it may have written. Its arguments are `const __restrict__`, which
// lets a compiler take loads for independent of everything: the machine code has to show
// that none has been moved above the wait.
//
// A compaction calls routines that it needs several times, with addresses of shared memory.
//
//===--------------------------------------------------------------------------------===//
#include "MachineCode.h"

#include "codegen/cuda/device/DeviceHeaders.h"
#include "nvrtc/Nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

constexpr const char *kWait = "ss::follow_stream();";
constexpr const char *kParts = "_parts";

class MachineCode : public testing::Test {
protected:
  void SetUp() override {
    auto found = nvrtc::Library::get();
    if (!found)
      GTEST_SKIP() << found.error();
    library = *found;
  }

  std::vector<MachineFunction> compile(const std::string &source) const {
    nvrtc::CompileInput input;
    input.name = "kernel.cu";
    input.source = source;
    for (const DeviceHeader &header : getDeviceHeaderTexts())
      input.headers.push_back({header.name, header.text});
    input.architecture = "sm_90a";
    input.flags = nvrtc::kernelFlags();
    Result<std::string> cubin = library->compile(input);
    EXPECT_TRUE(cubin) << cubin.error();
    return cubin ? functionsOf(*cubin) : std::vector<MachineFunction>();
  }
  /// A kernel of this body, over memory of floats.
  MachineFunction kernel(const std::string &body) const {
    const auto all = compile("extern \"C\" __global__ void probe(const float *__restrict__ in, "
                             "float *out, int n) {" +
                             body + "}");
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? MachineFunction() : all.front();
  }
  static int64_t countOf(const MachineFunction &function, bool (*is)(uint32_t)) {
    return std::count_if(function.opcodes.begin(), function.opcodes.end(), is);
  }

  /// Of the printed kernels, those that contain this.
  static std::vector<std::string> sourcesWith(const std::string &part) {
    std::vector<std::string> sources;
    for (const auto &entry :
         std::filesystem::directory_iterator(SS_SOURCE_DIR "/kernels_generated")) {
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      if (text.str().find(part) != std::string::npos)
        sources.push_back(text.str());
    }
    return sources;
  }
  /// Of all kernels by parts, a line each.
  std::string wrongIn(const std::string &source, int &kernels) const {
    std::string lines;
    for (const MachineFunction &function : compile(source)) {
      if (!function.name.ends_with(kParts))
        continue;
      ++kernels;
      if (const std::string wrong = wrongBeforeWait(function); !wrong.empty())
        lines += function.name + " " + wrong + "\n";
    }
    return lines;
  }

  std::shared_ptr<const nvrtc::Library> library;
};

/// Stores a value to shared memory, so that it is needed.
std::string keep(const std::string &value) {
  return "asm volatile(\"st.shared.b32 [%0], %1;\" :: \"r\"(n), \"r\"(" + value + "));";
}

TEST_F(MachineCode, ShowsEveryAccessOfGlobalMemory) {
  for (const std::string &body :
       {keep("__ldg((const int *)in)"), keep("((const int4 *)in)->z"),
        keep("*(volatile int *)out"), keep("__ldcg((const int *)in)"),
        "int x; asm volatile(\"ld.b32 %0, [%1];\" : \"=r\"(x) : \"l\"(in));" + keep("x"),
        std::string("asm volatile(\"st.f32 [%0], %1;\" :: \"l\"(out), \"f\"(1.0f));"),
        std::string("out[threadIdx.x] = 1;"), std::string("atomicAdd(out, 1.0f);"),
        std::string("atomicMax((int *)out, n);"), keep("atomicAdd((int *)out, 1)"),
        keep("atomicCAS((int *)out, 2, n)"),
        std::string("asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" "
                    ":: \"r\"(n), \"l\"(in));"),
        std::string("asm volatile(\"prefetch.global.L2 [%0];\" :: \"l\"(in));")})
    EXPECT_EQ(countOf(kernel(body), isGlobalAccess), 1) << body;
}

TEST_F(MachineCode, ShowsNoOtherAccess) {
  for (const std::string &body :
       {std::string(), keep("n"), keep("__shfl_xor_sync(~0u, n, 1)"),
        "int x; asm volatile(\"ld.shared.b32 %0, [%1];\" : \"=r\"(x) : \"r\"(n));" + keep("x"),
        std::string("int x; asm volatile(\"atom.shared.add.s32 %0, [%1], 3;\" "
                    ": \"=r\"(x) : \"r\"(n));"),
        std::string("volatile int local[9]; local[n] = 3; local[1] = local[n + 1];")})
    EXPECT_EQ(countOf(kernel(body), isGlobalAccess), 0) << body;
}

TEST_F(MachineCode, ShowsWhereAKernelWaits) {
  const std::string wait = "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");";
  EXPECT_EQ(countOf(kernel("out[n] = in[n];"), isWaitForStream), 0);
  EXPECT_EQ(countOf(kernel(wait + "out[n] = in[n];"), isWaitForStream), 1);
  EXPECT_EQ(wrongBeforeWait(kernel(wait + "out[n] = in[n];")), "");
  EXPECT_EQ(wrongBeforeWait(kernel("if (n > 3) return;" + wait + "out[n] = in[n];")), "");
  EXPECT_NE(wrongBeforeWait(kernel("out[n] = 1;" + wait)).find("accesses global memory"),
            std::string::npos);
  EXPECT_NE(wrongBeforeWait(kernel("\n#pragma unroll 1\nfor (int i = 0; i < n; ++i) "
                                   "__nanosleep(i);" + wait)).find("branches"),
            std::string::npos);
  EXPECT_EQ(wrongBeforeWait(kernel("out[n] = in[n];")), "does not wait for the stream");
}

TEST_F(MachineCode, OfDecodesByPartsAccessesNothingBeforeTheyWait) {
  int kernels = 0;
  const std::vector<std::string> sources = sourcesWith(kWait);
  for (const std::string &source : sources)
    EXPECT_EQ(wrongIn(source, kernels), "");
  EXPECT_GE(sources.size(), 9u);
  EXPECT_EQ(size_t(kernels), sources.size());
}

/// The first of them with a wait that comes too late.
TEST_F(MachineCode, ShowsThatADecodeWaitsTooLate) {
  std::string source = sourcesWith(kWait).at(0);
  const std::string wait = std::string("if (warps > 1)\n    ") + kWait;
  const std::string load = "const int64_t slot = ";
  ASSERT_NE(source.find(wait), std::string::npos);
  source.erase(source.find(wait), wait.size());
  ASSERT_NE(source.find(load), std::string::npos);
  source.insert(source.find(';', source.find(load)) + 1, wait);
  int kernels = 0;
  EXPECT_NE(wrongIn(source, kernels).find("accesses global memory"), std::string::npos);
  EXPECT_EQ(kernels, 1);
}

TEST_F(MachineCode, ShowsAccessesByAddressesOfAnyKind) {
  EXPECT_EQ(countOf(kernel("out[n] = in[n];"), isGenericAccess), 0);
  EXPECT_EQ(countOf(kernel("__shared__ float x[9]; x[threadIdx.x] = in[n]; __syncwarp(); "
                           "out[n] = x[n];"),
                    isGenericAccess),
            0);
  EXPECT_EQ(countOf(kernel("float x; asm volatile(\"ld.f32 %0, [%1];\" : \"=f\"(x) : "
                           "\"l\"(in)); asm volatile(\"st.f32 [%0], %1;\" :: \"l\"(out), "
                           "\"f\"(x));"),
                    isGenericAccess),
            2);
}

/// A compaction orthogonalises up to four times and multiplies ten times and more. With all of
/// it repeated, f32 rows took 10,000 to 11,600 instructions of 16 bytes, and 8 bits 16,000.
TEST_F(MachineCode, OfCompactionsCallsRoutinesWithSharedMemory) {
  const std::vector<std::string> sources = sourcesWith("ss::orthogonalize(16");
  EXPECT_GE(sources.size(), 9u);
  for (const std::string &source : sources)
    for (const MachineFunction &function : compile(source)) {
      EXPECT_LT(function.opcodes.size(), 12000u) << function.name;
      EXPECT_EQ(countOf(function, isGenericAccess), 0) << function.name;
    }
}

} // namespace
