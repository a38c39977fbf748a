//===- SSKTypes.td - pointers, scratch and register tiles -------*- tablegen -*-===//
#ifndef SINKSTATE_DIALECT_SSK_SSKTYPES_TD
#define SINKSTATE_DIALECT_SSK_SSKTYPES_TD

include "dialect/ssk/SSKDialect.td"
include "mlir/IR/CommonTypeConstraints.td"

def SSK_GlobalType : SSK_Type<"Global", "global"> {
  let summary = "pointer to elements in device memory";
  let description = [{
    A pointer to elements of type f32, f64, f16, bf16, f8E4M3FN, i32 or i64 in
    device memory. Two arguments of a kernel do not alias unless both have the
    attribute `ssk.may_alias`.

    ```mlir
    !ssk.global<f32>
    ```
  }];
  let parameters = (ins "::mlir::Type":$elementType);
  let builders = [TypeBuilderWithInferredContext<
      (ins "::mlir::Type":$elementType),
      [{ return $_get(elementType.getContext(), elementType); }]>];
  let assemblyFormat = "`<` $elementType `>`";
  let genVerifyDecl = 1;
}

def SSK_SharedType : SSK_Type<"Shared", "shared"> {
  let summary = "scratch of one program";
  let description = [{
    Row-major scratch that one program owns: shared memory on a GPU, the stack
    on a CPU. One or two dimensions, element types as for `!ssk.global`.

    ```mlir
    !ssk.shared<16x128xf32>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let builders = [TypeBuilderWithInferredContext<
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType),
      [{ return $_get(elementType.getContext(), shape, elementType); }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    int64_t getNumElements() const;
  }];
}

def SSK_TileType : SSK_Type<"Tile", "tile"> {
  let summary = "register tile";
  let description = [{
    A value of one or two dimensions in registers. With `lanes = d` dimension d
    is spread over the lanes; without it every lane holds all of the tile.

    ```mlir
    !ssk.tile<4x128xf32, lanes = 1>   // four rows, each over the lanes
    !ssk.tile<4xf32>                  // four numbers that every lane knows
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType,
                        "int64_t":$lanes);
  let builders = [TypeBuilderWithInferredContext<
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
           CArg<"int64_t", "-1">:$lanes),
      [{ return $_get(elementType.getContext(), shape, elementType, lanes); }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    int64_t getNumElements() const;
    /// True if a dimension is spread over the lanes (then getLanes() >= 0).
    bool hasLanes() const { return getLanes() >= 0; }
    /// The type of this tile without dimension `axis`: a tile of one dimension
    /// or, for a tile of one dimension, the element type.
    ::mlir::Type dropAxis(int64_t axis) const;
  }];
}

def SSK_AnyMemory : AnyTypeOf<[SSK_GlobalType, SSK_SharedType]>;
// What a kernel computes with besides tiles.
def SSK_AnyScalar : AnyTypeOf<[F32, F64, F16, BF16, F8E4M3FN, I32, I64]>;

#endif // SINKSTATE_DIALECT_SSK_SSKTYPES_TD
