//===- SSTypes.td - Types of ss -----------------------------*- tablegen -*-===//
#ifndef SINKSTATE_SS_TYPES_TD
#define SINKSTATE_SS_TYPES_TD

include "SSAttributes.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/CommonTypeConstraints.td"

class SS_Type<string name, string mnemonic_> : TypeDef<SS_Dialect, name> {
  let mnemonic = mnemonic_;
  let genVerifyDecl = 1;
  let genMnemonicAlias = 1;
}

def SS_StateType : SS_Type<"State", "state"> {
  let summary = "the recurrent state of one layer of one request";
  let description = [{
    One matrix `H` of `dv x dk` per head, held in one of three forms:

    * `factored`: at most `rank` components `s_i v_i u_i^T` per head and a
      buffer of at most `buffer + draft` appended pairs. The `active` components
      of largest weight take part in every compaction.
    * `sink`: the same, and the first component is a sink: the head's mean value
      `vbar`, which all requests share, times a key `c` of the state's own. The
      others are orthogonal to `vbar`, and they alone are truncated.
    * `dense`: `H` itself; `active`, `buffer`, `rank` and `draft` are 0.
    * `deferred`: `H` as it was when it was last written, and a buffer of at most
      `buffer` pairs appended since; the others are 0. A dense state that is read
      in every step and written once in `buffer` steps.

    `rank` is an upper bound of stored rows. `draft` (default 0) are buffer rows
    for speculative tokens beyond `buffer`. Head `h` reads key head
    `h / (heads / key_heads)`. `storage` is the type of stored rows and of `H`;
    rows of `fp8` are 2^8 times as long as what they mean, and only factored
    states have them. `rounding` (default `nearest`, ties to even) is how a
    storage narrower than f32 is written: `stochastic` rounds up with the
    probability of the part that is lost.

    Example:

    ```mlir
    !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>
    !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = dense, storage = f32>
    !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = deferred, buffer = 8, storage = f32>
    ```
  }];
  let parameters = (ins
    EnumParameter<SS_LayerTypeEnum>:$layer_type,
    "int64_t":$heads, "int64_t":$key_heads, "int64_t":$dv, "int64_t":$dk,
    EnumParameter<SS_FormEnum>:$form,
    DefaultValuedParameter<"int64_t", "0">:$active,
    DefaultValuedParameter<"int64_t", "0">:$buffer,
    DefaultValuedParameter<"int64_t", "0">:$rank,
    EnumParameter<SS_StorageEnum>:$storage,
    DefaultValuedParameter<"int64_t", "0">:$draft,
    DefaultValuedParameter<"::sinkstate::ss::Rounding",
                           "::sinkstate::ss::Rounding::nearest">:$rounding);
  let assemblyFormat = [{
    `<` $layer_type `,` struct($heads, $key_heads, $dv, $dk, $form, $active,
                               $buffer, $rank, $storage, $draft, $rounding) `>`
  }];
  let extraClassDeclaration = [{
    /// Components and a buffer, with a sink or without.
    bool isFactored() const {
      return getForm() == Form::factored || getForm() == Form::sink;
    }
    bool isSink() const { return getForm() == Form::sink; }
    bool isDense() const { return getForm() == Form::dense; }
    bool isDeferred() const { return getForm() == Form::deferred; }
    bool hasBuffer() const { return !isDense(); }
    const LayerTypeInfo &getInfo() const { return getLayerTypeInfo(getLayerType()); }
    /// Buffer capacity, draft tokens included.
    int64_t getBufferRows() const { return getBuffer() + getDraft(); }
    /// Rows of the block that a compaction works on: active and buffered ones.
    int64_t getBlockRows() const { return getActive() + getBufferRows(); }
    /// Bytes of one stored component: its row in the storage type and its f32 weight.
    int64_t getComponentBytes() const;
    /// Upper bound of the bytes of all heads' components; of `H` if dense or
    /// deferred.
    int64_t getRowBytes() const;
    /// Bytes of a full buffer of all heads: keys once per key head, `u` and
    /// log-decays once per head, all f32.
    int64_t getBufferBytes() const;
  }];
}

def SS_FactorsType : SS_Type<"Factors", "factors"> {
  let summary = "a block of components";
  let description = [{
    `rows` components per head: a row `[v_i | u_i]` of `dk + dv` elements and a
    weight each. A row whose weight is zero is absent.

    Example:

    ```mlir
    !ss.factors<heads = 32, rows = 16, dv = 128, dk = 128>
    ```
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$rows, "int64_t":$dv, "int64_t":$dk);
  let assemblyFormat = "`<` struct($heads, $rows, $dv, $dk) `>`";
}

//===----------------------------------------------------------------------===//
// Tensors of the operations: static shapes, heads leading
//===----------------------------------------------------------------------===//

class SS_TensorOf<Type element> :
    Type<And<[RankedTensorOf<[element]>.predicate, HasStaticShapePred]>,
         "tensor of static shape of " # element.summary, "::mlir::RankedTensorType">;
def SS_TensorF32 : SS_TensorOf<F32>;
def SS_TensorF64 : SS_TensorOf<F64>;

#endif // SINKSTATE_SS_TYPES_TD
