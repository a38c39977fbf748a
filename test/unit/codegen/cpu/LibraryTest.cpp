//===- LibraryTest.cpp - shared libraries of a package --------------------===//
#include "CpuTest.h"

#include "codegen/cpu/CpuCodegen.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Long copies, fills and converts: what a compiler likes to turn into calls.
const char *const kText = R"(
  ssk.kernel @work(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"}) {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c1024 = arith.constant 1024 : index
    %zero = arith.constant 0.0 : f32
    %s = ssk.alloc : !ssk.shared<64x64xf32>
    %g = ssk.alloc : !ssk.shared<64x64xf64>
    ssk.fill %s, %zero : !ssk.shared<64x64xf32>
    scf.for %i = %c0 to %c1024 step %c64 {
      %t = ssk.load %a[%i] : !ssk.global<f32> -> !ssk.tile<64xf32, lanes = 0>
      ssk.store %t, %b[%i] : !ssk.tile<64xf32, lanes = 0>, !ssk.global<f32>
    }
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %c1024 step %c1 {
      %x = ssk.read %a[%i] : !ssk.global<f32>
      %e = math.exp %x : f32
      %l = math.log1p %e : f32
      %q = math.sqrt %l : f32
      ssk.write %q, %b[%i] : !ssk.global<f32>
    }
    scf.for %i = %c0 to %c1024 step %c1 {
      ssk.write %zero, %b[%i] : !ssk.global<f32>
    }
    scf.for %i = %c0 to %c1024 step %c1 {
      %x = ssk.read %a[%i] : !ssk.global<f32>
      ssk.write %x, %b[%i] : !ssk.global<f32>
    }
    ssk.matmul %s, %s into %g : !ssk.shared<64x64xf32>, !ssk.shared<64x64xf32>, !ssk.shared<64x64xf64>
    ssk.return
  }
  ssk.kernel @other(%a: !ssk.global<f32> {ssk.name = "a"}) {
    %c0 = arith.constant 0 : index
    %x = ssk.read %a[%c0] : !ssk.global<f32>
    %y = arith.addf %x, %x : f32
    ssk.write %y, %a[%c0] : !ssk.global<f32>
    ssk.return
  })";

std::string readFile(const std::filesystem::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

class LibraryTest : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() /
             ("sinkstate-library-test-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
};

TEST_F(LibraryTest, EveryLevelLinksWithNothing) {
  for (llvm::StringRef isa : cpu::getIsaLevels()) {
    std::string path = folder / (isa.str() + ".so");
    // compileObject refuses undefined symbols, and so does the linker.
    ASSERT_EQ(writeLibrary(kText, isa.str(), path), "") << isa.str();
    if (!cpu::canRun(isa))
      continue;
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    auto work = reinterpret_cast<ss_cpu_kernel>(dlsym(library, "work"));
    auto other = reinterpret_cast<ss_cpu_kernel>(dlsym(library, "other"));
    ASSERT_TRUE(work && other);
    EXPECT_FALSE(dlsym(library, "work.program")) << "only kernels are visible";
    auto a = randomVector<float>(1024, 1);
    std::vector<float> b(1024);
    const float *pa = a.data(), *pb = b.data();
    const void *args[] = {&pa, &pb};
    work(args, nullptr, 0, 1);
    EXPECT_EQ(a, b);
    float first = a[0];
    other(args, nullptr, 0, 3);
    EXPECT_EQ(a[0], 8 * first);
    dlclose(library);
  }
}

TEST_F(LibraryTest, SameInputSameBytes) {
  ASSERT_EQ(writeLibrary(kText, "x86-64-v3", folder / "a.so"), "");
  ASSERT_EQ(writeLibrary(kText, "x86-64-v3", folder / "b.so"), "");
  std::string first = readFile(folder / "a.so");
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, readFile(folder / "b.so"));
}

TEST_F(LibraryTest, ErrorsSayWhatIsWrong) {
  std::string error = writeLibrary(kText, "x86-64-v9", folder / "a.so");
  EXPECT_NE(error.find("'x86-64-v9' is unknown, expected host"),
            std::string::npos)
      << error;
  error = writeLibrary(kText, "x86-64-v3", folder / "missing" / "a.so");
  EXPECT_NE(error.find("failed to link"), std::string::npos) << error;
  EXPECT_NE(error.find("cannot open output file"), std::string::npos) << error;
  // No level rounds f64 to f16 at once.
  error = writeLibrary(R"(
    ssk.kernel @f(%a: !ssk.global<f64> {ssk.name = "a"}, %b: !ssk.global<f16> {ssk.name = "b"}) {
      %c0 = arith.constant 0 : index
      %x = ssk.read %a[%c0] : !ssk.global<f64>
      %y = arith.truncf %x : f64 to f16
      ssk.write %y, %b[%c0] : !ssk.global<f16>
      ssk.return
    })",
                       "x86-64-v2", folder / "a.so");
  EXPECT_NE(error.find("expected no library call"), std::string::npos) << error;
}

} // namespace
