//===- SSDialect.td - The ss dialect ------------------------*- tablegen -*-===//
//
// The dialect itself and the classes that its other files build on.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_SS_DIALECT_TD
#define SINKSTATE_SS_DIALECT_TD

include "mlir/IR/DialectBase.td"
include "mlir/IR/OpBase.td"

def SS_Dialect : Dialect {
  let name = "ss";
  let cppNamespace = "::sinkstate::ss";
  let summary = "Recurrent states of hybrid language models in low-rank form";
  let description = [{
    The `ss` dialect holds the mathematics of recurrent states in value
    semantics. It has two parts:

    * the **model state graph**: which recurrent layers a model has, their
      sizes, gates and truncation policies (`ss.model`, `ss.layer`,
      `ss.schedule`);
    * the **state operations**: what one token or one compaction does to the
      state of one layer of one request (`ss.append`, `ss.readout`, `ss.split`,
      `ss.truncate`, ...).

    Heads are the leading axis of every tensor. There is no batch: a batch
    appears only in kernels, one level below.

    Functions made from a layer carry two attributes: `ss.layer`, the layer's
    symbol, and `ss.role`, one of `"decode"`, `"compact"` and `"densify"`.

    Example:

    ```mlir
    ss.model @tiny {
      ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
          gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.088
          policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
    }
    ```
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The layer that a function was made from: a FlatSymbolRefAttr.
    static constexpr ::llvm::StringLiteral getLayerAttrName() { return "ss.layer"; }
    /// What a function does: a StringAttr, see isRole().
    static constexpr ::llvm::StringLiteral getRoleAttrName() { return "ss.role"; }
    /// True for "decode", "compact" and "densify".
    static bool isRole(::llvm::StringRef role);

  private:
    void registerAttributes();
    void registerTypes();

  public:
  }];
}

class SS_Op<string mnemonic, list<Trait> traits = []> :
    Op<SS_Dialect, mnemonic, traits>;

#endif // SINKSTATE_SS_DIALECT_TD
