//===- SSKMemoryOps.td - scratch, elements and tiles in memory --*- tablegen -*-===//
#ifndef SINKSTATE_DIALECT_SSK_SSKMEMORYOPS_TD
#define SINKSTATE_DIALECT_SSK_SSKMEMORYOPS_TD

include "dialect/ssk/SSKTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class SSK_ElementTypeOf<string value, string memory>
    : TypesMatchWith<value # " has the element type of " # memory, memory, value,
        "::sinkstate::ssk::getMemoryElementType($_self)">;

def SSK_AllocOp : SSK_Op<"alloc", [HasParent<"KernelOp">]> {
  let summary = "scratch of the program";
  let description = [{
    Scratch that lives as long as the program; its bytes are undefined at
    first. It stands directly in the kernel, not in a loop.

    Scratch of the same `slot` is never needed at the same time and may lie in
    the same memory; `ssk-prepare` finds the slots.

    `pitch` (two dimensions): elements from one row to the next in shared memory,
    at least the row's. `ssk-prepare` sets it where rows would begin in the same
    bank. A CPU needs none.

    ```mlir
    %s = ssk.alloc : !ssk.shared<16x16xf64>
    %t = ssk.alloc {slot = 0 : i64} : !ssk.shared<4x128xf32>
    %u = ssk.alloc {pitch = 136 : i64} : !ssk.shared<16x128xf32>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$slot, OptionalAttr<I64Attr>:$pitch);
  let builders = [OpBuilder<(ins "::mlir::Type":$result), [{
    build($_builder, $_state, result, ::mlir::IntegerAttr(), ::mlir::IntegerAttr());
  }]>];
  let results = (outs Res<SSK_SharedType, "", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements from one row to the next (of one dimension: its length).
    int64_t getRowPitch();
  }];
}

def SSK_FillOp : SSK_Op<"fill", [SSK_ElementTypeOf<"value", "memory">]> {
  let summary = "sets every element of scratch";
  let description = [{
    ```mlir
    ssk.fill %s, %zero : !ssk.shared<16x16xf64>
    ```
  }];
  let arguments = (ins Arg<SSK_SharedType, "", [MemWrite]>:$memory,
                       SSK_AnyScalar:$value);
  let assemblyFormat = "$memory `,` $value attr-dict `:` qualified(type($memory))";
}

def SSK_ReadOp : SSK_Op<"read", [SSK_ElementTypeOf<"result", "memory">]> {
  let summary = "one element of memory";
  let description = [{
    Reads one element at a uniform address: one index for a global, one per
    dimension for scratch.

    ```mlir
    %x = ssk.read %weights[%i] : !ssk.global<f32>
    ```
  }];
  let arguments = (ins Arg<SSK_AnyMemory, "", [MemRead]>:$memory,
                       Variadic<Index>:$indices);
  let results = (outs SSK_AnyScalar:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$memory,
                                 "::mlir::ValueRange":$indices)>];
  let assemblyFormat = "$memory `[` $indices `]` attr-dict `:` qualified(type($memory))";
  let hasVerifier = 1;
}

def SSK_WriteOp : SSK_Op<"write", [SSK_ElementTypeOf<"value", "memory">]> {
  let summary = "sets one element of memory";
  let description = [{
    ```mlir
    ssk.write %x, %sigma[%i, %j] : !ssk.shared<4x4xf64>
    ```
  }];
  let arguments = (ins SSK_AnyScalar:$value,
                       Arg<SSK_AnyMemory, "", [MemWrite]>:$memory,
                       Variadic<Index>:$indices);
  let assemblyFormat =
      "$value `,` $memory `[` $indices `]` attr-dict `:` qualified(type($memory))";
  let hasVerifier = 1;
}

def SSK_PrefetchOp : SSK_Op<"prefetch"> {
  let summary = "asks for memory that will be read soon";
  let description = [{
    Brings `count` elements from `offset` on towards the processor, without
    waiting for them. No value depends on it, and the address may be any. The
    CPU's lowering asks for every cache line; the printer for GPUs takes none.

    ```mlir
    ssk.prefetch %pool[%offset] {count = 256 : i64} : !ssk.global<f32>
    ```
  }];
  let arguments = (ins SSK_GlobalType:$memory, Index:$offset,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count);
  let assemblyFormat = "$memory `[` $offset `]` attr-dict `:` qualified(type($memory))";
}

def SSK_LoadOp : SSK_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "a tile from memory";
  let description = [{
    In a global, row i of a tile of two dimensions starts at
    `offset + i * stride`; without `stride` rows follow each other. In scratch
    there is one index per dimension and the rows are the scratch's own; the
    tile's last dimension runs along the scratch's last dimension.

    With `limit` rows (elements of a tile of one dimension) from that number on
    are not touched and read as 0. `vector` is the number of elements of one
    access; `ssk-prepare` sets it where the address is known to be aligned.

    ```mlir
    %rows = ssk.load %pool[%offset] stride %c256 limit %n {vector = 4 : i64}
        : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
    %x = ssk.load %scratch[%i, %c0] : !ssk.shared<16x128xf32> -> !ssk.tile<128xf32, lanes = 0>
    ```
  }];
  let arguments = (ins Arg<SSK_AnyMemory, "", [MemRead]>:$memory,
                       Variadic<Index>:$indices,
                       Optional<Index>:$stride,
                       Optional<Index>:$limit,
                       OptionalAttr<I64Attr>:$vector);
  let results = (outs SSK_TileType:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$memory,
      "::mlir::ValueRange":$indices, CArg<"::mlir::Value", "{}">:$stride,
      CArg<"::mlir::Value", "{}">:$limit)>];
  let assemblyFormat = [{
    $memory `[` $indices `]` (`stride` $stride^)? (`limit` $limit^)? attr-dict
    `:` qualified(type($memory)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def SSK_StoreOp : SSK_Op<"store", [AttrSizedOperandSegments]> {
  let summary = "a tile to memory";
  let description = [{
    The counterpart of `ssk.load`: rows (elements of a tile of one dimension)
    from `limit` on are not written. Element types must match; conversions are
    maps.

    ```mlir
    ssk.store %y, %out[%offset] limit %n : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
    ```
  }];
  let arguments = (ins SSK_TileType:$value,
                       Arg<SSK_AnyMemory, "", [MemWrite]>:$memory,
                       Variadic<Index>:$indices,
                       Optional<Index>:$stride,
                       Optional<Index>:$limit,
                       OptionalAttr<I64Attr>:$vector);
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$memory,
      "::mlir::ValueRange":$indices, CArg<"::mlir::Value", "{}">:$stride,
      CArg<"::mlir::Value", "{}">:$limit)>];
  let assemblyFormat = [{
    $value `,` $memory `[` $indices `]` (`stride` $stride^)? (`limit` $limit^)?
    attr-dict `:` qualified(type($value)) `,` qualified(type($memory))
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def SSK_CopyOp : SSK_Op<"copy", [AttrSizedOperandSegments]> {
  let summary = "starts to copy a row from a global to scratch";
  let description = [{
    Copies the elements of one row of scratch (all of it, if it has one
    dimension) from a global, from `offset` on, without registers. Elements from
    `limit` on are not touched in the global and become 0. The scratch may not be
    looked at, and the global not be written, until `ssk.wait_copies`: many
    copies are under way at the same time. On a CPU it is a load and a store.

    ```mlir
    ssk.copy %rows[%offset] to %s[%i] limit %n {vector = 4 : i64}
        : !ssk.global<f32>, !ssk.shared<16x128xf32>
    ssk.wait_copies
    ```
  }];
  let arguments = (ins Arg<SSK_GlobalType, "", [MemRead]>:$source,
                       Index:$offset,
                       Arg<SSK_SharedType, "", [MemWrite]>:$target,
                       Optional<Index>:$row,
                       Optional<Index>:$limit,
                       OptionalAttr<I64Attr>:$vector);
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::mlir::Value":$offset,
      "::mlir::Value":$target, "::mlir::Value":$row, CArg<"::mlir::Value", "{}">:$limit), [{
    build($_builder, $_state, source, offset, target, row, limit, ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    $source `[` $offset `]` `to` $target (`[` $row^ `]`)? (`limit` $limit^)? attr-dict
    `:` qualified(type($source)) `,` qualified(type($target))
  }];
  let hasVerifier = 1;
}

def SSK_WaitCopiesOp : SSK_Op<"wait_copies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for the copies that were started";
  let description = [{
    After it every `ssk.copy` before it is done, and visible to the lane that
    made it; `ssk-prepare` adds the `ssk.sync` for the others. Nothing on a CPU.

    ```mlir
    ssk.wait_copies
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // SINKSTATE_DIALECT_SSK_SSKMEMORYOPS_TD
