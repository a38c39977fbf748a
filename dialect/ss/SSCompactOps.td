//===- SSCompactOps.td - Compaction and conversions ---------*- tablegen -*-===//
#ifndef SINKSTATE_SS_COMPACT_OPS_TD
#define SINKSTATE_SS_COMPACT_OPS_TD

include "SSDecodeOps.td"

def SS_SplitOp : SS_StateOp<"split", ["readsRows", "writesRows", "readsBuffer"],
                            [AllTypesMatch<["state", "frozen"]>]> {
  let summary = "takes the active components out of a state";
  let description = [{
    Folds the decays into the weights (where the layer type decays by channel:
    into the rows, which are then normalised), then takes the `active`
    components of largest weight. `frozen` is the state without them; it still
    holds the buffer.

    Example:

    ```mlir
    %active, %frozen = ss.split %state : !S -> !ss.factors<heads = 2, rows = 8, dv = 128, dk = 128>, !S
    ```
  }];
  let arguments = (ins SS_StateType:$state);
  let results = (outs SS_FactorsType:$active, SS_StateType:$frozen);
  let assemblyFormat = [{
    $state attr-dict `:` qualified(type($state)) `->` qualified(type($active)) `,` qualified(type($frozen))
  }];
}

def SS_ConcatOp : SS_StateOp<"concat", ["readsBuffer", "writesBuffer"]> {
  let summary = "puts the buffered pairs behind a block";
  let description = [{
    Takes the pairs out of the buffer of `frozen`, as components whose weights
    are their scalar decays (where the layer type decays by channel: 1, with the
    decay in the key). The result has `rows + buffer + draft` rows.

    Example:

    ```mlir
    %block = ss.concat %active, %frozen : !ss.factors<heads = 2, rows = 8, dv = 128, dk = 128>, !S
        -> !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>
    ```
  }];
  let arguments = (ins SS_FactorsType:$active, SS_StateType:$frozen);
  let results = (outs SS_FactorsType:$block);
  let assemblyFormat = [{
    $active `,` $frozen attr-dict `:` qualified(type($active)) `,` qualified(type($frozen))
    `->` qualified(type($block))
  }];
}

def SS_OrthogonalizeOp : SS_StateOp<"orthogonalize", [], [AllTypesMatch<["block", "basis"]>]> {
  let summary = "orthonormal bases of a block's two sides";
  let description = [{
    `U_c = Q_L R_L` and `V_c = Q_R R_R`. `basis` holds the rows of both bases
    (zero where the block has a lower rank), `left` and `right` the factors
    `R_L`, `R_R`, `[heads, m, m]`, m being the rows of the block.

    Example:

    ```mlir
    %q, %rl, %rr = ss.orthogonalize %block : !F -> !F, tensor<2x16x16xf64>, tensor<2x16x16xf64>
    ```
  }];
  let arguments = (ins SS_FactorsType:$block);
  let results = (outs SS_FactorsType:$basis, SS_TensorF64:$left, SS_TensorF64:$right);
  let assemblyFormat = [{
    $block attr-dict `:` qualified(type($block)) `->` qualified(type($basis)) `,` type($left) `,` type($right)
  }];
}

def SS_CoreOp : SS_StateOp<"core", [], [AllTypesMatch<["left", "right", "core"]>]> {
  let summary = "the small matrix between two bases";
  let description = [{
    `C = R_L diag(weights of the block) R_R^T`, `[heads, m, m]`.

    Example:

    ```mlir
    %core = ss.core %rl, %block, %rr : tensor<2x16x16xf64>, !F, tensor<2x16x16xf64> -> tensor<2x16x16xf64>
    ```
  }];
  let arguments = (ins SS_TensorF64:$left, SS_FactorsType:$block, SS_TensorF64:$right);
  let results = (outs SS_TensorF64:$core);
  let assemblyFormat = [{
    $left `,` $block `,` $right attr-dict `:` type($left) `,` qualified(type($block)) `,`
    type($right) `->` type($core)
  }];
}

def SS_CoreSvdOp : SS_StateOp<"core_svd", [], [AllTypesMatch<["core", "x", "y"]>]> {
  let summary = "singular value decomposition of a core";
  let description = [{
    `C = X diag(sigma) Y^T`, sigma `[heads, m]` descending and not negative.

    Example:

    ```mlir
    %x, %sigma, %y = ss.core_svd %core
        : tensor<2x16x16xf64> -> tensor<2x16x16xf64>, tensor<2x16xf64>, tensor<2x16x16xf64>
    ```
  }];
  let arguments = (ins SS_TensorF64:$core);
  let results = (outs SS_TensorF64:$x, SS_TensorF64:$sigma, SS_TensorF64:$y);
  let assemblyFormat = [{
    $core attr-dict `:` type($core) `->` type($x) `,` type($sigma) `,` type($y)
  }];
}

def SS_RotateOp : SS_StateOp<"rotate", [], [AllTypesMatch<["basis", "result"]>]> {
  let summary = "turns bases into components";
  let description = [{
    Components `Q_L X`, `Q_R Y` with the weights sigma.

    Example:

    ```mlir
    %rotated = ss.rotate %q, %x, %sigma, %y
        : !F, tensor<2x16x16xf64>, tensor<2x16xf64>, tensor<2x16x16xf64>
    ```
  }];
  let arguments = (ins SS_FactorsType:$basis, SS_TensorF64:$x, SS_TensorF64:$sigma, SS_TensorF64:$y);
  let results = (outs SS_FactorsType:$result);
  let assemblyFormat = [{
    $basis `,` $x `,` $sigma `,` $y attr-dict `:` qualified(type($basis)) `,` type($x) `,`
    type($sigma) `,` type($y)
  }];
}

def SS_OrthogonalizeSideOp : SS_StateOp<"orthogonalize_side", [], [AllTypesMatch<["block", "result"]>]> {
  let summary = "the same matrix with one side orthonormal";
  let description = [{
    The matrix of the block, `sum_i s_i u_i v_i^T`, in other components: those of
    `side` are orthonormal, an orthogonalisation of the block's rows there with
    the largest first. The other side's rows follow from that, are of unit
    length, and what their length was is the weight. Rows are zero where the
    block has a lower rank. Dropping components then costs at most the sum of
    their weights. The components are not sorted.

    First `right` and then `left` of a block reveals its rank almost as
    `ss.core_svd` does.

    Example:

    ```mlir
    %right = ss.orthogonalize_side %block side right : !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>
    ```
  }];
  let arguments = (ins SS_FactorsType:$block, SS_SideEnum:$side);
  let results = (outs SS_FactorsType:$result);
  let assemblyFormat = "$block `side` custom<Side>($side) attr-dict `:` qualified(type($block))";
  let hasVerifier = 0; // the types say all
}

def SS_MergeOp : SS_StateOp<"merge", ["writesRows"], [AllTypesMatch<["frozen", "result"]>]> {
  let summary = "puts components back into a state";
  let description = [{
    The components of `rotated` and of `frozen`, unsorted, with an empty buffer.

    Example:

    ```mlir
    %merged = ss.merge %rotated, %frozen : !F, !S
    ```
  }];
  let arguments = (ins SS_FactorsType:$rotated, SS_StateType:$frozen);
  let results = (outs SS_StateType:$result);
  let assemblyFormat = [{
    $rotated `,` $frozen attr-dict `:` qualified(type($rotated)) `,` qualified(type($frozen))
  }];
}

def SS_TruncateOp : SS_StateOp<"truncate", ["writesRows"], [AllTypesMatch<["state", "result"]>]> {
  let summary = "drops small components";
  let description = [{
    Keeps the components that the policy names. The error is at most the sum of
    the dropped weights. A dropped row is replaced by the last one.

    Example:

    ```mlir
    %out = ss.truncate %merged policy <relative, 3.0e-2> : !S
    ```
  }];
  let arguments = (ins SS_StateType:$state, SS_PolicyAttr:$policy);
  let results = (outs SS_StateType:$result);
  let assemblyFormat = "$state `policy` custom<Bare>($policy) attr-dict `:` qualified(type($state))";
}

def SS_InitOp : SS_StateOp<"init", ["writesRows", "writesBuffer"]> {
  let summary = "a state from a dense matrix";
  let description = [{
    After prefill: components of `[heads, dv, dk]` down to `eps` times the
    largest, and an empty buffer. A dense state takes the matrix as it is.

    Example:

    ```mlir
    %state = ss.init %dense eps 3.0e-2 : tensor<2x128x128xf32> -> !S
    ```
  }];
  let arguments = (ins SS_TensorF32:$dense, F64Attr:$eps);
  let results = (outs SS_StateType:$state);
  let assemblyFormat = "$dense `eps` $eps attr-dict `:` type($dense) `->` qualified(type($state))";
}

def SS_ConsolidateOp : SS_StateOp<"consolidate", ["readsRows", "writesRows"],
                                  [AllTypesMatch<["state", "result"]>]> {
  let summary = "an exact decomposition of the frozen part";
  let description = [{
    Replaces the frozen components by their singular value decomposition and
    drops those below `eps` times the largest weight of the state. The active
    part and the buffer stay.

    Example:

    ```mlir
    %out = ss.consolidate %state eps 3.0e-2 : !S
    ```
  }];
  let arguments = (ins SS_StateType:$state, F64Attr:$eps);
  let results = (outs SS_StateType:$result);
  let assemblyFormat = "$state `eps` $eps attr-dict `:` qualified(type($state))";
}

def SS_DensifyOp : SS_StateOp<"densify", ["readsRows", "readsBuffer", "parallelAxes"]> {
  let summary = "the matrix itself";
  let description = [{
    `H` at any token, decays and buffer included, as `[heads, dk, dv]`: row c of
    a head is column c of `H`. The state does not change.

    Example:

    ```mlir
    %h = ss.densify %state : !S -> tensor<2x128x128xf32>
    ```
  }];
  let arguments = (ins SS_StateType:$state);
  let results = (outs SS_TensorF32:$dense);
  let assemblyFormat = "$state attr-dict `:` qualified(type($state)) `->` type($dense)";
}

#endif // SINKSTATE_SS_COMPACT_OPS_TD
