//===- HostKernels.cpp - printed kernels, run without a GPU ---------------===//
#include "HostKernels.h"

#include "codegen/common/CppExpr.h"
#include "codegen/cuda/CudaPrinter.h"
#include "passes/pipelines/Register.h"
#include "sinkstate/cpu_routines.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

using namespace sinkstate;
using namespace sinkstate::test;

static void registerPassesOnce() {
  static std::once_flag once;
  std::call_once(once, [] { registerPasses(); });
}

PreparedModule::PreparedModule(const std::string &text, const std::string &pipeline) {
  registerPassesOnce();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return;
  }
  if (!runPasses(pipeline)) {
    ADD_FAILURE() << pipeline << " failed on:\n" << text;
    module = {};
  }
}

bool PreparedModule::runPasses(const std::string &pipeline) {
  auto manager = mlir::parsePassPipeline(pipeline);
  if (mlir::failed(manager))
    return false;
  mlir::PassManager passes(context.get());
  static_cast<mlir::OpPassManager &>(passes) = *manager;
  return mlir::succeeded(passes.run(*module));
}

void PreparedModule::prepare() {
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  EXPECT_TRUE(runPasses("builtin.module(ssk.kernel(ssk-prepare))"));
}

std::string PreparedModule::printCuda() const {
  mlir::FailureOr<std::string> text = cuda::printCudaModule(*module);
  if (mlir::succeeded(text))
    return *text;
  ADD_FAILURE() << "not printable";
  return {};
}

/// A function that runs the programs of one kernel, block by block, warp by warp.
static std::string getLauncher(ssk::KernelOp kernel) {
  std::string call;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    std::string cpp;
    if (auto global = llvm::dyn_cast<ssk::GlobalType>(type))
      cpp = codegen::getCppScalarType(global.getElementType()).str() + " *";
    else
      cpp = codegen::getCppScalarType(type).str();
    call += "*(" + cpp + " const *)args[" + std::to_string(i) + "], ";
  }
  std::string perBlock = std::to_string(kernel.getProgramsPerBlock());
  std::string name = kernel.getName().str();
  // Fewer blocks than programs where warps go on to further ones.
  std::string blocks = cuda::getCudaKernelInfo(kernel).loops
                           ? "2"
                           : "(programs + " + perBlock + " - 1) / " + perBlock;
  // Blocks of several warps, which have one program at a time.
  auto overBlocks = [&](int64_t warps, const std::string &entry) {
    return "extern \"C\" bool run_" + entry +
           "(const void *const *args, int64_t programs, int order) {\n"
           "  gridDim.x = " + blocks + ";\n"
           "  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)\n"
           "    if (!sinkstate::test::runBlock(sinkstate::test::LaneOrder(order), " +
           std::to_string(warps) + ",\n        [&] { " + entry + "(" + call +
           "programs); }))\n"
           "      return false;\n"
           "  return true;\n}\n";
  };
  const cuda::CudaKernelInfo info = cuda::getCudaKernelInfo(kernel);
  if (info.warps > 1)
    return overBlocks(info.warps, name);
  std::string text;
  if (info.parts > 1)
    text = overBlocks(info.parts, name + "_parts");
  return text + "extern \"C\" bool run_" + name +
         "(const void *const *args, int64_t programs, int order) {\n"
         "  gridDim.x = " + blocks + ";\n"
         "  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)\n"
         "    for (int warp = 0; warp < " + perBlock + "; ++warp) {\n"
         "      sinkstate::test::setWarpInBlock(warp);\n"
         "      if (!sinkstate::test::runWarp(sinkstate::test::LaneOrder(order),\n"
         "                                    [&] { " + name + "(" + call + "programs); }))\n"
         "        return false;\n"
         "    }\n"
         "  return true;\n}\n";
}

/// The scratch of more than 48 KB is an array of unknown size in CUDA.
static std::string withStaticScratch(std::string text) {
  const std::string dynamic = "extern __shared__ __align__(16) unsigned char shared_memory[];";
  const std::string fixed = "alignas(16) static unsigned char shared_memory[1 << 18];";
  for (size_t at = text.find(dynamic); at != std::string::npos; at = text.find(dynamic, at))
    text.replace(at, dynamic.size(), fixed);
  return text;
}

bool EmulatedKernels::isAvailable() { return std::filesystem::exists(SS_TEST_CXX); }

EmulatedKernels::EmulatedKernels(const PreparedModule &module) {
  char pattern[] = "/tmp/sinkstate-emulated-XXXXXX";
  folder = mkdtemp(pattern);
  std::string source = folder + "/kernels.cpp", binary = folder + "/kernels.so";
  {
    std::ofstream file(source);
    file << "#include \"EmulatedCuda.h\"\n" << withStaticScratch(module.printCuda());
    for (ssk::KernelOp kernel : module.get().getOps<ssk::KernelOp>())
      file << getLauncher(kernel);
  }
  std::string command = std::string(SS_TEST_CXX) +
                        " -std=c++20 -O0 -ffp-contract=off -fPIC -shared -w " SS_TEST_INCLUDES " " +
                        source + " " SS_TEST_EMULATOR " -o " + binary + " 2> " + folder + "/log";
  if (std::system(command.c_str()) != 0) {
    std::ifstream log(folder + "/log");
    std::stringstream text;
    text << log.rdbuf();
    ADD_FAILURE() << command << "\n" << text.str().substr(0, 4000);
    return;
  }
  library = dlopen(binary.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    ADD_FAILURE() << dlerror();
}

EmulatedKernels::~EmulatedKernels() {
  if (library)
    dlclose(library);
  std::error_code ignored;
  if (!testing::Test::HasFailure())
    std::filesystem::remove_all(folder, ignored);
}

void EmulatedKernels::run(const std::string &kernel, const void *const *args, int64_t programs,
                          int order) const {
  if (!library)
    return;
  auto function = reinterpret_cast<bool (*)(const void *const *, int64_t, int)>(
      dlsym(library, ("run_" + kernel).c_str()));
  ASSERT_TRUE(function) << kernel;
  EXPECT_TRUE(function(args, programs, order)) << "lanes diverge in " << kernel;
}

BothBackEnds::BothBackEnds(const PreparedModule &module) : emulated(module) {
  auto compiled = cpu::CpuJit::compile(module.get());
  if (compiled)
    jit = std::move(*compiled);
  else
    ADD_FAILURE() << llvm::toString(compiled.takeError());
}

void BothBackEnds::run(const std::string &kernel, const std::vector<const void *> &cpuArgs,
                       const std::vector<const void *> &cudaArgs, int64_t programs,
                       int order) const {
  ASSERT_TRUE(jit);
  ss_cpu_kernel function = jit->lookup(kernel);
  ASSERT_TRUE(function) << kernel;
  function(cpuArgs.data(), ss_cpu_routines(), 0, programs);
  emulated.run(kernel, cudaArgs.data(), programs, order);
}
