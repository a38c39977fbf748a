//===- Passes.td - Passes over the ss dialect ---------------*- tablegen -*-===//
#ifndef SINKSTATE_PASSES_SS_PASSES_TD
#define SINKSTATE_PASSES_SS_PASSES_TD

include "mlir/Pass/PassBase.td"

// What a pass did, in figures. MLIR's own pass statistics count nothing unless
// MLIR was built with assertions or LLVM_FORCE_ENABLE_STATS, so the figures are
// remarks, and work everywhere.
def SS_ReportOption : Option<"report", "report", "bool", "false",
    "Tell what was done as a remark">;

def SSExpandLayers : Pass<"ss-expand-layers", "::mlir::ModuleOp"> {
  let summary = "Write out what each layer does";
  let description = [{
    Makes the functions `@<layer>_decode`, `@<layer>_compact` and
    `@<layer>_densify` of every layer of the model, behind the `ss.model`, with
    the attributes `ss.layer` and `ss.role`. A dense or deferred layer has
    `_decode` alone; that of a deferred one begins with `ss.fold`.
    With `init` also `@<layer>_init`, which starts a state from a dense matrix.

    Assumes: at most one `ss.model` in the module, and no symbol of those names.
    Guarantees: one function per layer and role, in the order of the layers; the
    graph itself is unchanged.

    `report` tells how many functions were made for how many layers.

    Example: `ss.layer @layer0 type gdn ...` gives

    ```mlir
    func.func @layer0_decode(%state: !S, %q: ..., %k: ..., %v: ..., %gate: ..., %beta: ...,
                             %a_log: ..., %dt_bias: ...) -> (!S, tensor<2x128xf32>)
        attributes {ss.layer = @layer0, ss.role = "decode"}
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::sinkstate::ss::SSDialect"];
  let options = [
    SS_ReportOption,
    Option<"init", "init", "bool", "false",
           "Also make the functions that start states from dense matrices">,
    Option<"initWhereDense", "init-where-dense", "bool", "false",
           "Make these functions for layers whose dense states come back to factors "
           "by them on a GPU">
  ];
}

def SSScheduleCompaction : Pass<"ss-schedule-compaction", "::sinkstate::ss::ModelOp"> {
  let summary = "Spread the layers' compactions over the steps";
  let description = [{
    Writes the `ss.schedule` of a model, replacing one that is there. Of L
    factored layers, layer i (from 0) with a buffer of K_i pairs gets the phase
    `floor(i * K_i / L)`, so that a request compacts about `L / K` layers in
    every step and never all of them in one. `period` is the least common
    multiple of the buffers.

    With `compact-before` the last quarter of these layers, rounded, compacts
    before its tokens (`before`): on a GPU beside the decodes of layers in front of it, while the
    compactions of the others run beside the decodes behind them. A compaction
    has a latency of several decodes, and behind the last layers it would stand
    alone. Their phases are one less: the same step of the period, and the other
    side of its token. Layers with draft tokens compact before them in any case.

    Assumes: nothing. Guarantees: every factored layer has a phase in `[0, K_i)`;
    a model without factored layers has no schedule.

    `report` tells how many layers compact in one step at most, and how many of
    them before their tokens.

    Example: two layers with buffers of 8:

    ```mlir
    ss.schedule period 8 phases [@layer0 = 0, @layer1 = 3] before [@layer1]
    ```
  }];
  let options = [
    Option<"stagger", "stagger", "bool", "true",
           "Spread the compactions; false puts all of them in one step">,
    Option<"compactBefore", "compact-before", "bool", "false",
           "Let the last quarter of the layers compact before its tokens (small "
           "batches gain, large ones lose); false: only those with draft tokens">,
    SS_ReportOption,
  ];
}

class SS_FusePass<string argument, string what> : Pass<argument, "::mlir::func::FuncOp"> {
  let summary = "Make one kernel of " # what;
  let dependentDialects = ["::sinkstate::ss::SSDialect"];
  let options = [SS_ReportOption];
}

def SSFuseDecode : SS_FusePass<"ss-fuse-decode", "what a token does"> {
  let description = [{
    In functions of role `"decode"`: puts state operations that can run as one
    kernel into one `ss.fused "decode"`. It asks `SSStateOpInterface`: the
    operation is parallel over heads, and it writes no rows of a factored state,
    which are immutable between compactions. The rows are then read once for all
    of them.

    Assumes: `ss-expand-layers`. Guarantees: values and their order of
    evaluation are unchanged; an operation that cannot join, or that depends on
    a foreign operation which depends on the group, starts a group of its own.
    Operations already in an `ss.fused` are left alone.

    `report` tells, per function, how many state operations (each a kernel
    without fusion) became how many kernels, and how many bytes of state traffic
    one run saves: rows, buffers and blocks of factors, for states that are full.
  }];
}

def SSFuseCompaction : SS_FusePass<"ss-fuse-compaction", "a compaction or a densification"> {
  let description = [{
    In functions of role `"compact"` and `"densify"`: puts state operations that
    are parallel over heads into one `ss.fused` of that role, as
    `ss-fuse-decode` does.

    Assumes: `ss-expand-layers`. Guarantees and `report`: as `ss-fuse-decode`.
  }];
}

def SSSpecialize : Pass<"ss-specialize", "::mlir::ModuleOp"> {
  let summary = "Let equal layers share their functions";
  let description = [{
    Functions of layers with equal signatures become one. The signature is all
    that the function says - role, types, attributes, operations - without its
    name, its layer and the *value* of a policy (eps, share, bytes), which is an
    argument of the kernel; the kind of the policy belongs to it, and so does R
    of `fixed`. The shared function keeps the policy value of its first layer.

    The function is named by its signature:
    `gdn_decode_h2_kh2_128x128_a8_b8_f32_<8 hex digits>`: layer type, role,
    heads, key heads, dv x dk, active, buffer (and `_d<draft>`), storage, and a
    hash over the whole signature; a dense layer has `dense`, a deferred one
    `deferred_b8`, in place of active and buffer. It loses `ss.layer`; every `ss.layer` gets `kernels`.

    Assumes: `ss-expand-layers`; fusion is optional, but must come before.
    Guarantees: every layer's `kernels` names a function per role; names depend
    on signatures alone, not on the order or number of layers.

    `report` tells how many functions became how many.

    Example:

    ```mlir
    ss.layer @layer0 ... {kernels = {compact = @gdn_compact_h2_..., decode = @gdn_decode_h2_..., densify = @gdn_densify_h2_...}}
    ```
  }];
  let options = [SS_ReportOption];
}

#endif // SINKSTATE_PASSES_SS_PASSES_TD
