//===- SSAttributes.td - Enums and attributes of ss ---------*- tablegen -*-===//
#ifndef SINKSTATE_SS_ATTRIBUTES_TD
#define SINKSTATE_SS_ATTRIBUTES_TD

include "SSDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class SS_Enum<string name, string summary, list<I32EnumAttrCase> cases> :
    I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::sinkstate::ss";
}

// A new layer type is a case here and a row of the table in SSLayerTypes.cpp.
def SS_LayerTypeEnum : SS_Enum<"LayerType", "recurrence of a layer", [
  I32EnumAttrCase<"mamba2", 0>,
  I32EnumAttrCase<"gdn", 1>,
  I32EnumAttrCase<"kda", 2>
]>;

def SS_FormEnum : SS_Enum<"Form", "form of a stored state", [
  I32EnumAttrCase<"factored", 0>,
  I32EnumAttrCase<"dense", 1>,
  I32EnumAttrCase<"deferred", 2>,
  I32EnumAttrCase<"sink", 3>
]>;

def SS_StorageEnum : SS_Enum<"Storage", "element type of stored component rows", [
  I32EnumAttrCase<"f32", 0>,
  I32EnumAttrCase<"f16", 1>,
  I32EnumAttrCase<"bf16", 2>,
  I32EnumAttrCase<"fp8", 3>
]>;

// Of what is narrower than f32.
def SS_RoundingEnum : SS_Enum<"Rounding", "rounding of stored rows", [
  I32EnumAttrCase<"nearest", 0>,
  I32EnumAttrCase<"stochastic", 1>
]>;

def SS_PolicyKindEnum : SS_Enum<"PolicyKind", "rule of truncation", [
  I32EnumAttrCase<"relative", 0>,
  I32EnumAttrCase<"fixed", 1>,
  I32EnumAttrCase<"energy", 2>,
  I32EnumAttrCase<"budget", 3>
]>;

// Where a layer does not name one, its type's row in SSLayerTypes.cpp does.
def SS_CoreKindEnum : SS_Enum<"CoreKind", "decomposition of a compaction's core", [
  I32EnumAttrCase<"svd", 0>,
  I32EnumAttrCase<"qr", 1>
]>;

def SS_SideEnum : SS_Enum<"Side", "side of a component, u v^T", [
  I32EnumAttrCase<"left", 0>,
  I32EnumAttrCase<"right", 1>
]>;

def SS_GateKindEnum : SS_Enum<"GateKind", "form of a layer's log-decay", [
  I32EnumAttrCase<"softplus", 0>,
  I32EnumAttrCase<"softplus_channel", 1>,
  I32EnumAttrCase<"bounded_channel", 2>
]>;

def SS_NormKindEnum : SS_Enum<"NormKind", "normalisation of keys and queries", [
  I32EnumAttrCase<"none", 0>,
  I32EnumAttrCase<"add", 1>,
  I32EnumAttrCase<"max", 2>
]>;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

// I64Attr with a signed accessor: sizes are compared with those of types.
def SS_IntAttr : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit integer"> {
  let convertFromStorage = "$_self.getInt()";
}

class SS_Attr<string name, string mnemonic_> : AttrDef<SS_Dialect, name> {
  let mnemonic = mnemonic_;
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
}

def SS_PolicyAttr : SS_Attr<"Policy", "policy"> {
  let summary = "which components a compaction keeps";
  let description = [{
    | kind | value | kept |
    | --- | --- | --- |
    | `relative` | eps in [0, 1) | components of weight at least `max(eps, 2^-22) s_0` |
    | `fixed` | R >= 1 | the R largest |
    | `energy` | share in (0, 1] | the fewest largest that hold this share of the sum of squares |
    | `budget` | bytes >= 1 | the largest that fit into this many bytes per state |

    Values of `relative` and `energy` are arguments of a kernel and do not make
    another kernel; the kind does, and R of `fixed` does.

    Example:

    ```mlir
    #ss.policy<relative, 3.0e-2>
    #ss.policy<fixed, 16>
    ```
  }];
  let parameters = (ins "::sinkstate::ss::PolicyKind":$kind,
                        APFloatParameter<"the kind's parameter">:$number);
  let builders = [AttrBuilder<(ins "::sinkstate::ss::PolicyKind":$kind, "double":$value), [{
    return $_get($_ctxt, kind, ::llvm::APFloat(value));
  }]>];
  let extraClassDeclaration = [{
    double getValue() const { return getNumber().convertToDouble(); }
    /// R of `fixed`, bytes of `budget`.
    int64_t getCount() const { return static_cast<int64_t>(getValue()); }
    bool isFixed() const { return getKind() == PolicyKind::fixed; }
  }];
}

def SS_GateAttr : SS_Attr<"Gate", "gate"> {
  let summary = "how a layer's log-decay is computed";
  let description = [{
    | kind | log-decay |
    | --- | --- |
    | `softplus` | `-exp(A_log) softplus(x + bias)`, one per head |
    | `softplus_channel` | the same, one per key channel |
    | `bounded_channel` | `bound * sigmoid(exp(A_log) (x + bias))`, one per key channel, `bound < 0` |

    Example:

    ```mlir
    #ss.gate<softplus>
    #ss.gate<bounded_channel, -5.0>
    ```
  }];
  let parameters = (ins "::sinkstate::ss::GateKind":$kind,
                        APFloatParameter<"lower bound, 0 if the kind has none">:$number);
  let builders = [AttrBuilder<(ins "::sinkstate::ss::GateKind":$kind,
                                   CArg<"double", "0.0">:$bound), [{
    return $_get($_ctxt, kind, ::llvm::APFloat(bound));
  }]>];
  let extraClassDeclaration = [{
    double getBound() const { return getNumber().convertToDouble(); }
    bool isChannel() const { return getKind() != GateKind::softplus; }
    bool isBounded() const { return getKind() == GateKind::bounded_channel; }
  }];
}

def SS_NormAttr : SS_Attr<"Norm", "norm"> {
  let summary = "normalisation of keys and queries";
  let description = [{
    | kind | result |
    | --- | --- |
    | `none` | `x` |
    | `add` | `x / sqrt(sum x^2 + eps)` |
    | `max` | `x / max(sqrt(sum x^2), eps)` |

    Example:

    ```mlir
    #ss.norm<none>
    #ss.norm<add, 1.0e-6>
    ```
  }];
  let parameters = (ins "::sinkstate::ss::NormKind":$kind,
                        APFloatParameter<"epsilon, 0 if the kind has none">:$number);
  let builders = [AttrBuilder<(ins "::sinkstate::ss::NormKind":$kind,
                                   CArg<"double", "0.0">:$eps), [{
    return $_get($_ctxt, kind, ::llvm::APFloat(eps));
  }]>];
  let extraClassDeclaration = [{
    double getEps() const { return getNumber().convertToDouble(); }
  }];
}

#endif // SINKSTATE_SS_ATTRIBUTES_TD
