//===- SSDecodeOps.td - What one token does -----------------*- tablegen -*-===//
#ifndef SINKSTATE_SS_DECODE_OPS_TD
#define SINKSTATE_SS_DECODE_OPS_TD

include "SSInterfaces.td"
include "SSTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// An operation of the recurrence. `answers` are the interface methods that it
// does not take from the defaults.
class SS_StateOp<string mnemonic, list<string> answers = [], list<Trait> traits = []> :
    SS_Op<mnemonic, !listconcat(traits, [
      Pure, DeclareOpInterfaceMethods<SS_StateOpInterface, answers>])> {
  let hasVerifier = 1;
}

def SS_NormalizeOp : SS_StateOp<"normalize", [], [SameOperandsAndResultType]> {
  let summary = "normalises keys or queries";
  let description = [{
    Applies the norm to every row of `[key_heads, dk]`, then multiplies by
    `scale`.

    Example:

    ```mlir
    %qn = ss.normalize %q norm #ss.norm<add, 1.0e-6> scale 0.088 : tensor<2x128xf32>
    ```
  }];
  let arguments = (ins SS_TensorF32:$input, SS_NormAttr:$norm, F64Attr:$scale);
  let results = (outs SS_TensorF32:$result);
  let assemblyFormat = "$input `norm` qualified($norm) `scale` $scale attr-dict `:` type($input)";
}

def SS_LogDecayOp : SS_StateOp<"log_decay", [], [AllTypesMatch<["input", "dt_bias", "result"]>]> {
  let summary = "the log-decay of a token";
  let description = [{
    `softplus`: input, bias and result are `[heads]`; channel gates:
    `[heads, dk]`. `a_log` is `[heads]`. The result is at most 0.

    Example:

    ```mlir
    %g = ss.log_decay %gate, %a_log, %dt_bias gate <softplus>
       : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins SS_TensorF32:$input, SS_TensorF32:$a_log, SS_TensorF32:$dt_bias,
                       SS_GateAttr:$gate);
  let results = (outs SS_TensorF32:$result);
  let assemblyFormat = [{
    $input `,` $a_log `,` $dt_bias `gate` custom<Bare>($gate) attr-dict `:`
    functional-type(operands, results)
  }];
}

def SS_WriteWeightOp : SS_StateOp<"write_weight", [], [SameOperandsAndResultType]> {
  let summary = "the weight of a written pair from beta";
  let description = [{
    `sigmoid(beta) * scale`, `[heads]`.

    Example:

    ```mlir
    %w = ss.write_weight %beta scale 1.0 : tensor<2xf32>
    ```
  }];
  let arguments = (ins SS_TensorF32:$beta, F64Attr:$scale);
  let results = (outs SS_TensorF32:$result);
  let assemblyFormat = "$beta `scale` $scale attr-dict `:` type($beta)";
}

def SS_TimeStepOp : SS_StateOp<"time_step", [], [SameOperandsAndResultType]> {
  let summary = "the weight of a written pair from a time step";
  let description = [{
    `softplus(input + dt_bias)`, `[heads]`; softplus of more than 20 is its
    argument. The weight of mamba2.

    Example:

    ```mlir
    %w = ss.time_step %dt, %dt_bias : tensor<4xf32>
    ```
  }];
  let arguments = (ins SS_TensorF32:$input, SS_TensorF32:$dt_bias);
  let results = (outs SS_TensorF32:$result);
  let assemblyFormat = "$input `,` $dt_bias attr-dict `:` type($input)";
}

def SS_FoldOp : SS_StateOp<"fold",
    ["readsRows", "writesRows", "readsBuffer", "writesBuffer"],
    [AllTypesMatch<["state", "result"]>]> {
  let summary = "writes the pairs of a full buffer into a deferred state";
  let description = [{
    Where the buffer is full, its pairs are added to the matrix, decayed to the
    last of them, and the buffer is empty; otherwise nothing happens. The value
    of the state does not change, but for the rounding of its storage. Only for
    states of the form `deferred`; comes before the token's decay.

    Example:

    ```mlir
    %s0 = ss.fold %state : !S
    ```
  }];
  let arguments = (ins SS_StateType:$state);
  let results = (outs SS_StateType:$result);
  let assemblyFormat = "$state attr-dict `:` qualified(type($state))";
}

def SS_DecayOp : SS_StateOp<"decay", ["readsRows", "writesRows", "writesBuffer"],
                            [AllTypesMatch<["state", "result"]>]> {
  let summary = "decays a state";
  let description = [{
    `H diag(exp(g))`. `g` is `[heads]`, or `[heads, dk]` where the layer type
    decays by channel. In a factored or deferred state no row changes: the decay
    is added to the running sum of log-decays. A dense state is multiplied.

    Example:

    ```mlir
    %s1 = ss.decay %state by %g : !S, tensor<2xf32>
    ```
  }];
  let arguments = (ins SS_StateType:$state, SS_TensorF32:$log_decay);
  let results = (outs SS_StateType:$result);
  let assemblyFormat = "$state `by` $log_decay attr-dict `:` qualified(type($state)) `,` type($log_decay)";
}

def SS_AppendOp : SS_StateOp<"append",
    ["readsRows", "writesRows", "readsBuffer", "writesBuffer"],
    [AllTypesMatch<["state", "result"]>]> {
  let summary = "writes a token's pair";
  let description = [{
    theta 0: `H + w v k^T`; theta 1: `H + w (v - H k) k^T`. theta is a property
    of the layer type. The state is already decayed. A factored or deferred
    state appends the pair to its buffer; exact in all forms. `key` is `[key_heads, dk]`,
    `value` `[heads, dv]`, `weight` `[heads]`.

    Example:

    ```mlir
    %s2 = ss.append %s1, %k, %v weight %w
        : !S, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2xf32>
    ```
  }];
  let arguments = (ins SS_StateType:$state, SS_TensorF32:$key, SS_TensorF32:$value,
                       SS_TensorF32:$weight);
  let results = (outs SS_StateType:$result);
  let assemblyFormat = [{
    $state `,` $key `,` $value `weight` $weight attr-dict `:`
    qualified(type($state)) `,` type($key) `,` type($value) `,` type($weight)
  }];
}

def SS_ReadoutOp : SS_StateOp<"readout", ["readsRows", "readsBuffer"]> {
  let summary = "reads a state with a query";
  let description = [{
    `y = H q`, the buffered pairs included. `query` is `[key_heads, dk]`, the
    result `[heads, dv]`.

    Example:

    ```mlir
    %y = ss.readout %s2, %qn : !S, tensor<2x128xf32> -> tensor<2x128xf32>
    ```
  }];
  let arguments = (ins SS_StateType:$state, SS_TensorF32:$query);
  let results = (outs SS_TensorF32:$result);
  let assemblyFormat = [{
    $state `,` $query attr-dict `:` qualified(type($state)) `,` type($query) `->` type($result)
  }];
}

#endif // SINKSTATE_SS_DECODE_OPS_TD
