//===- CpuJit.cpp - kernels in this process -------------------------------===//
#include "codegen/cpu/CpuCodegen.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

using namespace sinkstate::cpu;

CpuJit::CpuJit(std::unique_ptr<llvm::orc::LLJIT> jit) : jit(std::move(jit)) {}

CpuJit::~CpuJit() = default;

llvm::Expected<std::unique_ptr<CpuJit>>
CpuJit::compile(mlir::ModuleOp module, const CpuTarget &target) {
  auto object = compileObject(module, target);
  if (!object)
    return object.takeError();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  if (llvm::Error error = (*jit)->addObjectFile(std::move(*object)))
    return std::move(error);
  return std::unique_ptr<CpuJit>(new CpuJit(std::move(*jit)));
}

ss_cpu_kernel CpuJit::lookup(llvm::StringRef name) const {
  auto address = jit->lookup(name);
  if (!address) {
    llvm::consumeError(address.takeError());
    return nullptr;
  }
  return address->toPtr<ss_cpu_kernel>();
}
