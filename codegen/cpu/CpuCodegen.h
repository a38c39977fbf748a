//===- CpuCodegen.h - kernels to machine code ---------------------*- C++
//-*-===//
//
// ssk kernels to code of this process or to a shared library that is linked
// with nothing. Entry points have the type ss_cpu_kernel of
// sinkstate/routines.h.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_CPU_CPUCODEGEN_H
#define SINKSTATE_CODEGEN_CPU_CPUCODEGEN_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include "sinkstate/routines.h"

#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace sinkstate::cpu {

/// What to generate code for.
struct CpuTarget {
  /// "host" for this processor with all its features, or "x86-64-v2",
  /// "x86-64-v3", "x86-64-v4".
  std::string isa = "host";
  /// f32 elements of a SIMD register: 4, 8 or 16; 0 takes the target's own.
  int64_t vectorWidth = 0;

  static CpuTarget host() { return {}; }
  static CpuTarget level(llvm::StringRef isa) { return {isa.str(), 0}; }
};

/// The levels that a package has code for, lowest first.
llvm::ArrayRef<llvm::StringLiteral> getIsaLevels();

/// True if this process can run code of `isa`.
bool canRun(llvm::StringRef isa);

/// Compiles the ssk kernels of a module, which is left as it is, to a
/// position-independent object. The object has no undefined symbol.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileObject(mlir::ModuleOp module, const CpuTarget &target);

/// Compiles the ssk kernels of a module and links them into the shared
/// library `path`. Needs the linker ld.lld.
llvm::Error emitSharedLibrary(mlir::ModuleOp module, const CpuTarget &target,
                              llvm::StringRef path);

/// Kernels compiled into this process. The code lives as long as this object.
class CpuJit {
public:
  /// Compiles the ssk kernels of a module, which is left as it is.
  static llvm::Expected<std::unique_ptr<CpuJit>>
  compile(mlir::ModuleOp module, const CpuTarget &target = CpuTarget::host());
  ~CpuJit();

  /// The entry point of a kernel, or null if there is none of that name.
  ss_cpu_kernel lookup(llvm::StringRef name) const;

private:
  explicit CpuJit(std::unique_ptr<llvm::orc::LLJIT> jit);
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace sinkstate::cpu

#endif // SINKSTATE_CODEGEN_CPU_CPUCODEGEN_H
