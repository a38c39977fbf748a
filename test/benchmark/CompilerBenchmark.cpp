//===- CompilerBenchmark.cpp - Time of passes and of the printer ----------===//
//
// A graph of 96 layers of three types, once with layers that share their kernels,
// as models have them, once with kernels of its own for every layer.
//
//   compiler-benchmark --benchmark_repetitions=5
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaPrinter.h"
#include "passes/pipelines/Register.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>
#include <string>

using namespace mlir;

namespace {

constexpr int kLayers = 96;

/// What every stage of `ss-pipeline` does, in order.
const char *const kStages[] = {
    "ss-expand-layers",
    "ss.model(ss-schedule-compaction)",
    "func.func(ss-fuse-decode,ss-fuse-compaction)",
    "ss-specialize",
    "convert-ss-to-ssk",
    "canonicalize,cse",
    "ssk.kernel(ssk-prepare)",
};

std::string layerText(int i, int active) {
  const char *const sizes[] = {
      "gdn index %d heads 32 key_heads 16 dv 128 dk 128 gate #ss.gate<softplus>",
      "mamba2 index %d heads 96 key_heads 8 dv 80 dk 128 gate "
      "#ss.gate<softplus>",
      "kda index %d heads 32 key_heads 32 dv 128 dk 128 gate "
      "#ss.gate<softplus_channel>"};
  char text[512];
  std::snprintf(text, sizeof text, sizes[i % 3], i);
  return "  ss.layer @layer" + std::to_string(i) + " type " + text +
         " norm #ss.norm<none> query_scale 1.0 policy #ss.policy<relative, "
         "1.0e-2> active " +
         std::to_string(active) + " buffer 8 storage f32 form factored\n";
}

/// `distinct`: 32 sizes of the active set, so that no two layers share a kernel.
std::string graphText(bool distinct) {
  std::string text = "ss.model @many {\n";
  for (int i = 0; i < kLayers; ++i)
    text += layerText(i, distinct ? 4 + i / 3 : 8);
  return text + "}\n";
}

class Compilation {
public:
  explicit Compilation(bool distinct)
      : context(registry(), MLIRContext::Threading::DISABLED),
        module(parseSourceString<ModuleOp>(graphText(distinct), &context)) {
    if (!module)
      fail("the graph cannot be parsed");
  }

  ModuleOp get() { return *module; }
  OwningOpRef<ModuleOp> clone() {
    return OwningOpRef<ModuleOp>(cast<ModuleOp>((*module)->clone()));
  }
  /// What the passes make of a module, which has the compilation's context.
  void run(ModuleOp on, const std::string &passes) {
    PassManager manager(&context);
    if (failed(parsePassPipeline(passes, manager)) || failed(manager.run(on)))
      fail(passes);
  }

private:
  static DialectRegistry registry() {
    DialectRegistry registry;
    sinkstate::registerDialects(registry);
    return registry;
  }
  [[noreturn]] static void fail(const std::string &what) {
    std::cerr << "compiler-benchmark: " << what << " failed\n";
    std::exit(1);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

void measure(benchmark::State &state, Compilation &compilation,
             const std::string &passes) {
  for (auto _ : state) {
    state.PauseTiming();
    OwningOpRef<ModuleOp> module = compilation.clone();
    state.ResumeTiming();
    compilation.run(*module, passes);
    state.PauseTiming();
    module = nullptr;
    state.ResumeTiming();
  }
}

void stage(benchmark::State &state, size_t index, bool distinct) {
  Compilation compilation(distinct);
  for (size_t before = 0; before < index; ++before)
    compilation.run(compilation.get(), kStages[before]);
  measure(state, compilation, kStages[index]);
}

void pipeline(benchmark::State &state, bool distinct) {
  Compilation compilation(distinct);
  measure(state, compilation, "ss-pipeline");
}

void print(benchmark::State &state, bool distinct) {
  Compilation compilation(distinct);
  compilation.run(compilation.get(), "ss-pipeline");
  int64_t bytes = 0;
  for (auto _ : state) {
    auto text = sinkstate::cuda::printCudaModule(compilation.get());
    if (failed(text))
      return state.SkipWithError("a kernel cannot be printed");
    bytes += int64_t(text->size());
  }
  state.SetBytesProcessed(bytes);
}

void registerAll() {
  for (bool distinct : {false, true}) {
    const std::string suffix = distinct ? "/distinct" : "/shared";
    auto add = [&](const std::string &name, auto function) {
      benchmark::RegisterBenchmark((name + suffix).c_str(), function)
          ->Unit(benchmark::kMillisecond);
    };
    for (size_t i = 0; i < std::size(kStages); ++i)
      add(kStages[i], [=](benchmark::State &state) { stage(state, i, distinct); });
    add("ss-pipeline",
        [=](benchmark::State &state) { pipeline(state, distinct); });
    add("ssk-to-cuda", [=](benchmark::State &state) { print(state, distinct); });
  }
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  sinkstate::registerPasses();
  registerAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
