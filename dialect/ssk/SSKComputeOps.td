//===- SSKComputeOps.td - arithmetic on tiles and scratch -------*- tablegen -*-===//
#ifndef SINKSTATE_DIALECT_SSK_SSKCOMPUTEOPS_TD
#define SINKSTATE_DIALECT_SSK_SSKCOMPUTEOPS_TD

include "dialect/ssk/SSKTypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def SSK_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines", [
    I32EnumAttrCase<"Add", 0, "add">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::sinkstate::ssk";
}

def SSK_TileDims : TypedArrayAttrBase<I64ArrayAttr,
    "for each operand the result dimensions that it covers">;

def SSK_SplatOp : SSK_Op<"splat", [Pure]> {
  let summary = "a tile with one value everywhere";
  let description = [{
    ```mlir
    %t = ssk.splat %x : f32 -> !ssk.tile<128xf32, lanes = 0>
    ```
  }];
  let arguments = (ins SSK_AnyScalar:$value);
  let results = (outs SSK_TileType:$result);
  let assemblyFormat = "$value attr-dict `:` qualified(type($value)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def SSK_IotaOp : SSK_Op<"iota", [Pure]> {
  let summary = "a tile of its elements' numbers";
  let description = [{
    Element i of a tile of one dimension is i.

    ```mlir
    %t = ssk.iota : !ssk.tile<128xi32, lanes = 0>
    ```
  }];
  let results = (outs SSK_TileType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def SSK_MapOp : SSK_Op<"map", [Pure, SingleBlock]> {
  let summary = "elementwise computation";
  let description = [{
    Computes every element of the result by the body, whose arguments are the
    operands' elements. `dims` says for each operand, in ascending order, which
    dimensions of the result it covers; along the others it is repeated. An
    operand that covers the result's lane dimension has its own lanes there;
    any other operand has no lanes. The body holds operations of arith and math
    on scalars and may use scalars from outside.

    ```mlir
    %t = ssk.map (%a, %b) dims [[0, 1], [1]]
        : (!ssk.tile<4x128xf32, lanes = 1>, !ssk.tile<128xf32, lanes = 0>) -> !ssk.tile<4x128xf32, lanes = 1> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.mulf %x, %y : f32
      ssk.yield %z : f32
    }
    ```
  }];
  let arguments = (ins Variadic<SSK_TileType>:$inputs, SSK_TileDims:$dims);
  let results = (outs SSK_TileType:$result);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::ValueRange":$inputs,
        "::llvm::ArrayRef<::llvm::SmallVector<int64_t>>":$dims,
        "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$body)>,
    // Every input covers all dimensions of the result.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::ValueRange":$inputs,
        "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$body)>];
  let assemblyFormat = [{
    ` ` `(` $inputs `)` `dims` $dims attr-dict `:` functional-type($inputs, results)
    $body
  }];
  let extraClassDeclaration = [{
    /// The result dimensions that input `index` covers.
    ::llvm::SmallVector<int64_t> getInputDims(unsigned index);
    /// The value that the body yields.
    ::mlir::Value getYielded() {
      return getBody().front().getTerminator()->getOperand(0);
    }
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def SSK_YieldOp : SSK_Op<"yield", [Terminator, Pure, HasParent<"MapOp">]> {
  let summary = "value of a map's body";
  let description = [{
    ```mlir
    ssk.yield %z : f32
    ```
  }];
  let arguments = (ins SSK_AnyScalar:$value);
  let assemblyFormat = "$value attr-dict `:` qualified(type($value))";
}

def SSK_ReduceOp : SSK_Op<"reduce", [Pure]> {
  let summary = "combines a tile along one axis";
  let description = [{
    Over the lane axis each lane combines its own elements in ascending order,
    then an xor butterfly combines the lanes; over a register axis the order is
    ascending. `max` and `min` of floating point values ignore NaN, as fmax and
    fmin do. The result has the axis removed; a tile of one dimension becomes a
    scalar.

    ```mlir
    %t = ssk.reduce add %a axis 1 : !ssk.tile<4x128xf32, lanes = 1> -> !ssk.tile<4xf32>
    %x = ssk.reduce max %t axis 0 : !ssk.tile<4xf32> -> f32
    ```
  }];
  let arguments = (ins SSK_ReduceKind:$kind, SSK_TileType:$input, I64Attr:$axis);
  let results = (outs AnyTypeOf<[SSK_TileType, SSK_AnyScalar]>:$result);
  let builders = [OpBuilder<(ins "::sinkstate::ssk::ReduceKind":$kind,
                                 "::mlir::Value":$input, "int64_t":$axis)>];
  let assemblyFormat = [{
    $kind $input `axis` $axis attr-dict `:` qualified(type($input)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def SSK_DotOp : SSK_Op<"dot", [Pure]> {
  let summary = "contraction over the lane axis";
  let description = [{
    Contracts two tiles over their last dimension, which is their lane axis:
    products are fused into the sums, in the order of `ssk.reduce`. The first
    tile may have rows; without rows the result is a scalar.

    ```mlir
    %d = ssk.dot %rows, %k : !ssk.tile<4x128xf32, lanes = 1>, !ssk.tile<128xf32, lanes = 0> -> !ssk.tile<4xf32>
    ```
  }];
  let arguments = (ins SSK_TileType:$lhs, SSK_TileType:$rhs);
  let results = (outs AnyTypeOf<[SSK_TileType, F32, F64]>:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs)>];
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` qualified(type($lhs)) `,` qualified(type($rhs)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def SSK_AccumulateOp : SSK_Op<"accumulate", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "adds weighted rows";
  let description = [{
    `acc + sum_i coef[i] rows[i, :]`, i ascending, each product fused into the
    sum.

    ```mlir
    %y1 = ssk.accumulate %y, %d, %rows : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<4xf32>, !ssk.tile<4x128xf32, lanes = 1>
    ```
  }];
  let arguments = (ins SSK_TileType:$acc, SSK_TileType:$coef, SSK_TileType:$rows);
  let results = (outs SSK_TileType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$acc, "::mlir::Value":$coef,
                                 "::mlir::Value":$rows)>];
  let assemblyFormat = [{
    $acc `,` $coef `,` $rows attr-dict `:` qualified(type($acc)) `,` qualified(type($coef)) `,` qualified(type($rows))
  }];
  let hasVerifier = 1;
}

def SSK_MatmulOp : SSK_Op<"matmul", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "product of two matrices in scratch";
  let description = [{
    `c = op(a) op(b)` on scratch of f32 or f64, mixed as needed. Products and
    sums are in f64, fused, with ascending k, and are rounded once to the type
    of c. `c` may be one of the factors, where that is not transposed and the
    other one is square: the product then takes its place.

    `accumulate`: `c += op(a) op(b)`, the sums begin with the elements of c.
    `limit`: only the rows of c before it are wanted; the others may be written or
    not, and op(a) may have more than c. With either, c is none of the factors.

    ```mlir
    ssk.matmul %a, %a into %gram {transpose_b}
        : !ssk.shared<16x128xf32>, !ssk.shared<16x128xf32>, !ssk.shared<16x16xf64>
    ssk.matmul %t, %a into %a
        : !ssk.shared<16x16xf64>, !ssk.shared<16x128xf32>, !ssk.shared<16x128xf32>
    ssk.matmul %t, %a into %q limit %n {accumulate}
        : !ssk.shared<16x16xf64>, !ssk.shared<16x128xf32>, !ssk.shared<16x128xf32>
    ```
  }];
  let arguments = (ins SSK_SharedType:$lhs, SSK_SharedType:$rhs,
                       SSK_SharedType:$output,
                       Optional<Index>:$limit,
                       UnitAttr:$transpose_a,
                       UnitAttr:$transpose_b,
                       UnitAttr:$accumulate);
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
      "::mlir::Value":$output, CArg<"bool", "false">:$transposeA,
      CArg<"bool", "false">:$transposeB, CArg<"bool", "false">:$accumulate,
      CArg<"::mlir::Value", "{}">:$limit)>];
  let assemblyFormat = [{
    $lhs `,` $rhs `into` $output (`limit` $limit^)? attr-dict
    `:` qualified(type($lhs)) `,` qualified(type($rhs)) `,` qualified(type($output))
  }];
  let extraClassDeclaration = [{
    /// Rows of the product, columns of it, and the contracted length.
    int64_t getM();
    int64_t getN();
    int64_t getK();
    /// Whether the product takes the place of a factor.
    bool isInPlace() {
      return getOutput() == getLhs() || getOutput() == getRhs();
    }
  }];
  let hasVerifier = 1;
}

def SSK_TopKOp : SSK_Op<"top_k"> {
  let summary = "indices of the largest values";
  let description = [{
    Writes the indices of the `a` largest of the first `count` values,
    descending; ties go by the lower index, NaN comes first, -0 equals 0, and
    -1 stands where there are fewer than `a` values.

    ```mlir
    ssk.top_k %w count %n into %idx : !ssk.shared<160xf32>, !ssk.shared<16xi32>
    ```
  }];
  let arguments = (ins Arg<SSK_SharedType, "", [MemRead]>:$values,
                       Index:$count,
                       Arg<SSK_SharedType, "", [MemWrite]>:$indices);
  let assemblyFormat = [{
    $values `count` $count `into` $indices attr-dict
    `:` qualified(type($values)) `,` qualified(type($indices))
  }];
  let hasVerifier = 1;
}

#endif // SINKSTATE_DIALECT_SSK_SSKCOMPUTEOPS_TD
