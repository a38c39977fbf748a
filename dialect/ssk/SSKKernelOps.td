//===- SSKKernelOps.td - kernels, calls and synchronisation -----*- tablegen -*-===//
#ifndef SINKSTATE_DIALECT_SSK_SSKKERNELOPS_TD
#define SINKSTATE_DIALECT_SSK_SSKKERNELOPS_TD

include "dialect/ssk/SSKTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def SSK_KernelOp : SSK_Op<"kernel", [
    IsolatedFromAbove, AutomaticAllocationScope, FunctionOpInterface,
    SingleBlock]> {
  let summary = "a kernel";
  let description = [{
    A symbol that both back ends compile to one entry point. Its arguments are
    `!ssk.global`, i32, i64 or f32; each has the attribute `ssk.name`, the name
    under which the runtime binds it. It has no results.

    `programs_per_block` is the number of programs of a block on a GPU, each of one
    warp (with `ssk.parts` a block is one program, of one or more warps);
    `min_blocks` asks the GPU's compiler for registers so few that as many
    blocks stay on a multiprocessor (without it: it chooses). `warps` (1 without it)
    is the number of warps that run a program together: they share out products,
    routines made for it and loops with `ssk.over_warps`. No bit depends on it but
    those of such routines. `role`
    says what the kernel is for (`decode`, `compact`, `densify`).

    ```mlir
    ssk.kernel @zero(%y: !ssk.global<f32> {ssk.name = "y"})
        attributes {programs_per_block = 4 : i64, role = "decode"} {
      %p = ssk.program_id : index
      %zero = arith.constant 0.0 : f32
      ssk.write %zero, %y[%p] : !ssk.global<f32>
      ssk.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       DefaultValuedAttr<I64Attr, "4">:$programs_per_block,
                       OptionalAttr<I64Attr>:$min_blocks,
                       OptionalAttr<I64Attr>:$warps,
                       OptionalAttr<StrAttr>:$role);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
      "::llvm::ArrayRef<::mlir::Type>":$argumentTypes,
      "::llvm::ArrayRef<::llvm::StringRef>":$argumentNames,
      CArg<"::llvm::StringRef", "{}">:$role,
      CArg<"int64_t", "4">:$programsPerBlock)>];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The argument types of the kernel.
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    /// Warps that run a program together.
    int64_t getWarpsOfProgram() { return getWarps().value_or(1); }
    /// The name under which the runtime binds argument `index`.
    ::llvm::StringRef getArgumentName(unsigned index);
    /// True if argument `index` may be the same memory as another one.
    bool mayAlias(unsigned index);
  }];
  let extraClassDefinition = [{
    ::llvm::StringRef $cppClass::getArgumentName(unsigned index) {
      auto name =
          getArgAttrOfType<::mlir::StringAttr>(index, SSKDialect::kNameAttr);
      return name ? name.getValue() : ::llvm::StringRef();
    }
    bool $cppClass::mayAlias(unsigned index) {
      return getArgAttr(index, SSKDialect::kMayAliasAttr) != nullptr;
    }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def SSK_ReturnOp : SSK_Op<"return", [Terminator, HasParent<"KernelOp">, Pure]> {
  let summary = "end of a kernel";
  let description = [{
    Ends the program.

    ```mlir
    ssk.return
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def SSK_ProgramIdOp : SSK_Op<"program_id", [Pure]> {
  let summary = "number of the program";
  let description = [{
    The linear number of this program, 64 bits wide.

    ```mlir
    %p = ssk.program_id : index
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def SSK_NextProgramOp : SSK_Op<"next_program", [Pure]> {
  let summary = "number of the program that runs next here";
  let description = [{
    The number of the program that runs after this one on the same thread of a
    CPU, or this one's own after which none does. What a program computes may not
    depend on it: it says which memory will be wanted, for `ssk.prefetch`.
    Programs of a GPU run side by side, and its printer takes none.

    ```mlir
    %next = ssk.next_program : index
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
}

def SSK_CallOp : SSK_Op<"call", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "call of a routine of the device library";
  let description = [{
    Calls a routine on scratch and scalars. Names and signatures come from
    `runtime/include/sinkstate/routines.def`; `reads` and `writes` are the
    operands whose memory the routine reads and writes. The result is the
    routine's status bits.

    ```mlir
    %st = ssk.call @ss_orthogonalize(%m, %gram, %t) reads [1] writes [1, 2]
        : (i32, !ssk.shared<16x16xf64>, !ssk.shared<16x16xf64>) -> i32
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<AnyTypeOf<[SSK_SharedType, I32, F32, F64]>>:$args,
                       DenseI64ArrayAttr:$reads,
                       DenseI64ArrayAttr:$writes);
  let results = (outs I32:$status);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$callee,
      "::mlir::ValueRange":$args, "::llvm::ArrayRef<int64_t>":$reads,
      "::llvm::ArrayRef<int64_t>":$writes)>];
  let assemblyFormat = [{
    $callee `(` $args `)` `reads` $reads `writes` $writes attr-dict
    `:` functional-type($args, results)
  }];
  let extraClassDeclaration = [{
    /// The position of the callee in the routine table, or -1.
    int64_t getRoutineIndex();
  }];
  let hasVerifier = 1;
}

def SSK_SyncOp : SSK_Op<"sync", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "makes the program's memory visible to all its lanes";
  let description = [{
    Makes memory that the program's lanes wrote visible to its other lanes.
    `ssk-prepare` inserts it between conflicting accesses; it is nothing on a
    CPU.

    ```mlir
    ssk.sync
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def SSK_PartsOp : SSK_Op<"parts", [
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "sums of parts that several warps may compute";
  let description = [{
    Runs its body once for each of `count` parts, whose number is the body's
    argument, and adds what the parts yield, in ascending order of the parts:
    `((part 0 + part 1) + part 2) + ...`. The second body gets what the last part
    yields and says what that adds instead: there the last part goes on with what
    is not worth dividing.

    No bit depends on who runs a part, so on a GPU a program is launched with one
    warp, which runs all parts in turn, or with a warp for each. Every warp runs
    what comes before; what comes after is the first warp's alone, and the others
    are done. Therefore the bodies write no memory, a kernel has one such
    operation, no global is written before it, and nothing but what follows it in
    its own block (and ends the kernel) comes after it. It is in no loop.

    `through` (set by `ssk-prepare`): scratch of every warp for its share of each
    sum.

    ```mlir
    %sum = ssk.parts 4 {
    ^bb0(%part: index):
      %rows = ssk.load %x[%part] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
      ssk.yield_part %rows : !ssk.tile<128xf32, lanes = 0>
    } last {
    ^bb0(%own: !ssk.tile<128xf32, lanes = 0>):
      ssk.yield_part %own : !ssk.tile<128xf32, lanes = 0>
    } : !ssk.tile<128xf32, lanes = 0>
    ```
  }];
  let arguments = (ins I64Attr:$count, Variadic<SSK_SharedType>:$through);
  let results = (outs Variadic<SSK_TileType>:$sums);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$last);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "int64_t":$count, "::mlir::TypeRange":$sums,
      "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::Value)>":$body,
      "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::ValueRange)>":$last)>];
  let assemblyFormat = [{
    $count (`through` $through^ `:` qualified(type($through)))? attr-dict-with-keyword
    $body `last` $last `:` qualified(type($sums))
  }];
  let extraClassDeclaration = [{
    /// The number of the part, an argument of the body.
    ::mlir::BlockArgument getPart() { return getBody().getArgument(0); }
    /// What each part has.
    ::mlir::OperandRange getYielded();
    /// What the last part adds to the sums.
    ::mlir::OperandRange getLastYielded();
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def SSK_YieldPartOp : SSK_Op<"yield_part", [Terminator, Pure, HasParent<"PartsOp">]> {
  let summary = "what one part has, or adds to the sums";
  let description = [{
    ```mlir
    ssk.yield_part %h_q : !ssk.tile<128xf32, lanes = 0>
    ```
  }];
  let arguments = (ins Variadic<SSK_TileType>:$values);
  let assemblyFormat = "$values attr-dict `:` qualified(type($values))";
}

#endif // SINKSTATE_DIALECT_SSK_SSKKERNELOPS_TD
