//===- SSGraphOps.td - The model state graph ----------------*- tablegen -*-===//
#ifndef SINKSTATE_SS_GRAPH_OPS_TD
#define SINKSTATE_SS_GRAPH_OPS_TD

include "SSTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def SS_ModelOp : SS_Op<"model", [
    Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator,
    NoRegionArguments]> {
  let summary = "the recurrent layers of a model";
  let description = [{
    Holds an `ss.layer` per recurrent layer and, once scheduled, one
    `ss.schedule`. Layer names and indices are unique. Attention layers are not
    listed, but counted by the indices.

    Example:

    ```mlir
    ss.model @tiny {
      ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
          gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.088
          policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The layers in the order of the graph.
    auto getLayers() { return getBody().front().getOps<LayerOp>(); }
    /// The schedule, or null.
    ScheduleOp getSchedule();
    LayerOp lookupLayer(::llvm::StringRef name);
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name)>];
  let skipDefaultBuilders = 1;
}

def SS_LayerOp : SS_Op<"layer", [Symbol, HasParent<"ModelOp">]> {
  let summary = "one recurrent layer";
  let description = [{
    Declares a layer's recurrence, sizes, gate, normalisation and how its state
    is kept. `index` is the layer's place in the whole model. `beta_scale` is 2
    where the model allows negative eigenvalues (default 1, only for layer types
    with a beta). `draft` are buffer rows for speculative tokens (default 0).
    `kernels`, written by `ss-specialize`, names the functions of the layer.

    `core` (optional) is how a compaction decomposes: `svd` leaves components
    that are orthonormal on both sides and sorted by weight, `qr` is a pivoted
    orthogonalisation without a singular value decomposition: left sides are
    orthonormal, right sides of unit length, which keeps a few components more
    at the same error and costs a part of the time. Where it is absent a fixed
    rank is kept by `svd`, since what is counted has to come in order; elsewhere
    the layer type's default holds.

    `rounding` (optional) is how a storage narrower than f32 is written, to
    `nearest` where it is absent: see `!ss.state`.

    A layer of form `sink` has the policy `fixed`: see `!ss.state`.

    The policy `fixed, R` has no frozen part: `active` and `buffer` are R.
    The block of a compaction, `active + buffer + draft` rows, has at most 64.

    Example:

    ```mlir
    ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
        gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.088
        policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core qr storage f32 form factored
        {beta_scale = 2.0 : f64, draft = 4}
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    SS_LayerTypeEnum:$type, SS_IntAttr:$index,
    SS_IntAttr:$heads, SS_IntAttr:$key_heads, SS_IntAttr:$dv, SS_IntAttr:$dk,
    SS_GateAttr:$gate, SS_NormAttr:$norm, F64Attr:$query_scale,
    SS_PolicyAttr:$policy, SS_IntAttr:$active, SS_IntAttr:$buffer,
    OptionalAttr<SS_CoreKindEnum>:$core,
    SS_StorageEnum:$storage, OptionalAttr<SS_RoundingEnum>:$rounding,
    SS_FormEnum:$form,
    DefaultValuedAttr<F64Attr, "1.0">:$beta_scale,
    DefaultValuedAttr<SS_IntAttr, "0">:$draft,
    OptionalAttr<DictionaryAttr>:$kernels,
    OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = [{
    $sym_name `type` custom<LayerType>($type) `index` $index `heads` $heads
    `key_heads` $key_heads `dv` $dv `dk` $dk `gate` qualified($gate)
    `norm` qualified($norm) `query_scale` $query_scale
    `policy` qualified($policy) `active` $active `buffer` $buffer
    (`core` custom<CoreKind>($core)^)? `storage` custom<Storage>($storage)
    (`rounding` custom<Rounding>($rounding)^)? `form` custom<Form>($form) attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    const LayerTypeInfo &getInfo() { return getLayerTypeInfo(getType()); }
    /// Components and a buffer, with a sink or without.
    bool isFactored() {
      return getForm() == Form::factored || getForm() == Form::sink;
    }
    bool isSink() { return getForm() == Form::sink; }
    /// The layer's own decomposition, or that of its policy and type.
    CoreKind getCoreKind() {
      return getCore().value_or(getPolicy().getKind() == PolicyKind::fixed
                                    ? CoreKind::svd
                                    : getInfo().defaultCore);
    }
    /// Without one, to nearest.
    Rounding getRoundingKind() { return getRounding().value_or(Rounding::nearest); }
    /// Upper bound of the rows stored per state: min(dv, dk) + active + buffer
    /// + draft, or 2 R of a fixed rank (and the sink); 0 in the dense forms.
    int64_t getRankBound();
    /// The type of this layer's state.
    StateType getStateType();
    /// The function of a role written by ss-specialize, or null.
    ::mlir::FlatSymbolRefAttr getKernel(::llvm::StringRef role);
  }];
}

def SS_ScheduleOp : SS_Op<"schedule", [HasParent<"ModelOp">]> {
  let summary = "when each layer compacts";
  let description = [{
    A request compacts a layer after the token at position `p` (from 0) when
    `(p + 1) mod K` is the layer's phase, K being the layer's buffer. `phases`
    has an entry for every factored layer, each in `[0, K)`. `period` is the
    least common multiple of the buffers: after it the pattern repeats.
    The layers of `before` compact at the same places, but later: before the
    next token, the one at `p + 1`, instead of after the one at `p`. So do all
    layers with draft tokens, named there or not. Nothing that a token reads
    depends on it.
    Written by `ss-schedule-compaction`.

    Example:

    ```mlir
    ss.schedule period 8 phases [@layer0 = 0, @layer1 = 3] before [@layer1]
    ```
  }];
  let arguments = (ins SS_IntAttr:$period,
    TypedArrayAttrBase<FlatSymbolRefAttr, "layer names">:$layers,
    DenseI64ArrayAttr:$phases,
    OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "layer names">>:$before);
  let assemblyFormat = [{
    `period` $period `phases` custom<Phases>($layers, $phases)
    (`before` $before^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The phase of a layer; 0 if the schedule does not name it.
    int64_t getPhase(::llvm::StringRef layer);
    /// Whether `before` names a layer.
    bool isBefore(::llvm::StringRef layer);
  }];
}

def SS_FusedOp : SS_Op<"fused", [IsolatedFromAbove, SingleBlock]> {
  let summary = "operations that run as one kernel";
  let description = [{
    The body's arguments are the operands, its `ss.yield` gives the results.
    Nothing else crosses the border, so the body is all that one kernel does.
    The role is `"decode"`, `"compact"` or `"densify"`.

    Example:

    ```mlir
    %y = ss.fused "decode"(%s, %q) : (!S, tensor<2x128xf32>) -> (tensor<2x128xf32>) {
    ^bb0(%state: !S, %query: tensor<2x128xf32>):
      %0 = ss.readout %state, %query : !S, tensor<2x128xf32> -> tensor<2x128xf32>
      ss.yield %0 : tensor<2x128xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$role, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $role `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body
  }];
  let hasRegionVerifier = 1;
}

def SS_YieldOp : SS_Op<"yield", [Terminator, ReturnLike, Pure, HasParent<"FusedOp">]> {
  let summary = "ends the body of ss.fused";
  let description = [{
    Gives the results of the surrounding `ss.fused`.

    Example:

    ```mlir
    ss.yield %state, %y : !S, tensor<2x128xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), "">];
}

#endif // SINKSTATE_SS_GRAPH_OPS_TD
