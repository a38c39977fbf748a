//===- Passes.td - lowering of kernels to the CPU ---------------*- tablegen -*-===//
#ifndef SINKSTATE_CODEGEN_CPU_PASSES_TD
#define SINKSTATE_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertSSKToLLVM : Pass<"convert-ssk-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower kernels to functions on SIMD vectors";
  let description = [{
    Replaces every `ssk.kernel @NAME` by `llvm.func @NAME(ptr args, ptr
    routines, i64 begin, i64 end)`, which runs the programs [begin, end) through
    an internal `@NAME.program`. Their bodies hold scf, arith, vector and LLVM
    operations; the pipeline `ssk-to-llvm` takes them all the way to the LLVM
    dialect.

    Tiles become lists of SIMD vectors. The lane dimension is cut into chunks
    of `vector-width` f32 elements and power-of-two tails, so that no other
    vector reaches LLVM. Reductions are written out as fixed trees. exp, log and
    log1p become polynomials; no call of a C library remains.

    ```mlir
    ssk.kernel @copy(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"}) {
      %c0 = arith.constant 0 : index
      %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<20xf32, lanes = 0>
      ssk.store %t, %b[%c0] : !ssk.tile<20xf32, lanes = 0>, !ssk.global<f32>
      ssk.return
    }
    // becomes, in @copy.program with vector-width=16,
    //   %0 = llvm.load %a : vector<16xf32>, %1 = llvm.load %a[16] : vector<4xf32>, two stores
    ```
  }];
  let options = [Option<"vectorWidth", "vector-width", "int64_t",
      /*default=*/"8", "f32 elements of a SIMD register: 4, 8 or 16">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::LLVM::LLVMDialect"];
}

#endif // SINKSTATE_CODEGEN_CPU_PASSES_TD
