//===- SSKDialect.td - the kernel dialect -----------------------*- tablegen -*-===//
//
// The dialect itself and the classes that every other file of it needs.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DIALECT_SSK_SSKDIALECT_TD
#define SINKSTATE_DIALECT_SSK_SSKDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def SSK_Dialect : Dialect {
  let name = "ssk";
  let cppNamespace = "::sinkstate::ssk";
  let summary = "Kernels on tiles: one program is a warp or a loop iteration";
  let description = [{
    One **program** is the work of one warp on a GPU (of several, where
    `ssk.parts` divides it or the kernel has `warps`) and one iteration of a loop on a CPU. Values are scalars, which are uniform over the program by
    construction, and register tiles, whose distribution over the lanes is part
    of their type. The only ways from a tile to a scalar are a reduction and
    `ssk.read` at a uniform address, so `scf.for` and `scf.if` have uniform
    conditions and no analysis has to find barriers.

    Both back ends obey the numeric contract that the operations state: which
    products and sums are fused, in which precision and in which order.

    ```mlir
    ssk.kernel @scale(%x: !ssk.global<f32> {ssk.name = "x"},
                      %factor: f32 {ssk.name = "factor"})
        attributes {programs_per_block = 4 : i64, role = "decode"} {
      %p = ssk.program_id : index
      %c128 = arith.constant 128 : index
      %offset = arith.muli %p, %c128 : index
      %t = ssk.load %x[%offset] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
      %u = ssk.map (%t) dims [[0]] : (!ssk.tile<128xf32, lanes = 0>) -> !ssk.tile<128xf32, lanes = 0> {
      ^bb0(%e: f32):
        %m = arith.mulf %e, %factor : f32
        ssk.yield %m : f32
      }
      ssk.store %u, %x[%offset] : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
      ssk.return
    }
    ```
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Argument attribute with the name under which the runtime binds it.
    static constexpr ::llvm::StringLiteral kNameAttr = "ssk.name";
    /// Argument attribute (unit): may be the same memory as another argument
    /// that has it. All other arguments do not alias.
    static constexpr ::llvm::StringLiteral kMayAliasAttr = "ssk.may_alias";
    /// Argument attribute (integer) of an i32 or i64: a positive number that
    /// divides it, a promise of the caller that allows wide accesses. Of a global of
    /// them: it divides every element.
    static constexpr ::llvm::StringLiteral kDivisibleByAttr = "ssk.divisible_by";
    /// Attribute (unit) of an `scf.for`: its iterations may run at the same time,
    /// none reads what another one writes. It ends its kernel, which writes no
    /// memory beside it; bounds are constant.
    static constexpr ::llvm::StringLiteral kIndependentAttr = "ssk.independent";

    /// Attribute (unit) of an scf.for: its iterations write places of their own and
    /// read nothing that the loop writes, so that the warps of a program may share
    /// them out (SSKWarps.h).
    static constexpr ::llvm::StringLiteral kOverWarpsAttr = "ssk.over_warps";

    void registerTypes();
    void registerOps();
  }];
  let hasRegionArgAttrVerify = 1;
  let hasOperationAttrVerify = 1;
}

class SSK_Type<string cppName, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<SSK_Dialect, cppName, traits> {
  let mnemonic = typeMnemonic;
}

class SSK_Op<string mnemonic, list<Trait> traits = []>
    : Op<SSK_Dialect, mnemonic, traits>;

#endif // SINKSTATE_DIALECT_SSK_SSKDIALECT_TD
