//===- CpuTest.cpp - kernels from text, compiled and run ------------------===//
#include "CpuTest.h"

#include "codegen/cpu/CpuCodegen.h"
#include "dialect/ssk/SSKDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

using namespace sinkstate;
using namespace sinkstate::test;

namespace {
/// A context and a module parsed in it.
struct Source {
  explicit Source(const std::string &text) {
    context.loadDialect<ssk::SSKDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::scf::SCFDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};
} // namespace

struct Kernels::State {
  std::unique_ptr<cpu::CpuJit> jit;
};

std::vector<Target> sinkstate::test::getTargets() {
  std::vector<Target> targets;
  for (llvm::StringRef isa : cpu::getIsaLevels())
    if (cpu::canRun(isa))
      targets.push_back({isa.str(), 0});
  targets.push_back({"host", 0});
  return targets;
}

std::string
sinkstate::test::getTargetName(const testing::TestParamInfo<Target> &info) {
  std::string name =
      info.param.isa + "_" + std::to_string(info.param.vectorWidth);
  for (char &c : name)
    if (c == '-')
      c = '_';
  return name;
}

Kernels::Kernels(const std::string &text, const Target &target)
    : state(std::make_unique<State>()) {
  Source source(text);
  if (!source.module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return;
  }
  auto jit =
      cpu::CpuJit::compile(*source.module, {target.isa, target.vectorWidth});
  if (!jit)
    ADD_FAILURE() << llvm::toString(jit.takeError());
  else
    state->jit = std::move(*jit);
}

Kernels::~Kernels() = default;

void Kernels::call(const char *name, const void *const *args,
                   const ss_routine_table *routines, int64_t begin,
                   int64_t end) const {
  if (!state->jit)
    return;
  ss_cpu_kernel kernel = state->jit->lookup(name);
  if (!kernel) {
    ADD_FAILURE() << "no kernel named " << name;
    return;
  }
  kernel(args, routines, begin, end);
}

std::string sinkstate::test::getCompileError(const std::string &text) {
  Source source(text);
  if (!source.module)
    return "does not parse";
  auto object = cpu::compileObject(*source.module, cpu::CpuTarget::host());
  return object ? "" : llvm::toString(object.takeError());
}

std::string sinkstate::test::writeLibrary(const std::string &text,
                                          const std::string &isa,
                                          const std::string &path) {
  Source source(text);
  if (!source.module)
    return "does not parse";
  llvm::Error error =
      cpu::emitSharedLibrary(*source.module, cpu::CpuTarget::level(isa), path);
  return llvm::toString(std::move(error));
}

std::string sinkstate::test::substitute(
    std::string text,
    std::vector<std::pair<std::string, std::string>> replacements) {
  for (const auto &[name, value] : replacements) {
    std::string key = "${" + name + "}";
    for (size_t at = 0; (at = text.find(key, at)) != std::string::npos;
         at += value.size())
      text.replace(at, key.size(), value);
  }
  return text;
}
