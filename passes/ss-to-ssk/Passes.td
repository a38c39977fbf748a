//===- Passes.td - from the mathematics to kernels --------------*- tablegen -*-===//
#ifndef SINKSTATE_PASSES_SSTOSSK_PASSES_TD
#define SINKSTATE_PASSES_SSTOSSK_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertSSToSSKPass : Pass<"convert-ss-to-ssk", "::mlir::ModuleOp"> {
  let summary = "turns fused functions into kernels";
  let description = [{
    Every function with an `ss.role` becomes an `ssk.kernel` of the same name,
    whose arguments are the tables of docs/interfaces.md section 3. The graph
    (`ss.model`) stays and refers to the kernels by the same names.

    Assumes: the body of each function is one `ss.fused` region, as the fusion
    passes leave it; rows are stored in f32.

    Guarantees: a decode kernel reads every stored row, buffered pair or dense
    element once; a compaction moves no row that it does not change; every
    exponent is at most 0. What a compaction for a GPU takes of shared memory a
    block has.
  }];
  let options = [
    Option<"device", "device", "std::string", /*default=*/"\"sm_90\"",
           "whose row of KernelTuning.cpp says what the graph does not: cpu or a "
           "GPU's architecture">,
    Option<"rowsInFlight", "rows-in-flight", "int64_t", /*default=*/"0",
           "rows of a state that a kernel of the delta rule loads together; where "
           "more than one, kernels without it load twice as many (0: by device)">,
    Option<"programsPerBlock", "programs-per-block", "int64_t", /*default=*/"0",
           "programs (warps) of a block on a GPU (0: by device)">,
    Option<"initWarps", "init-warps", "int64_t", /*default=*/"0",
           "warps that initialise one state together on a GPU (0: by device)">,
    Option<"spareScratch", "spare-scratch", "bool", "false",
           "let compactions form orthonormal rows at once, as they do where a GPU's "
           "block has no room for the matrices that save it">,
    Option<"report", "report", "bool", "false",
           "Tell what was chosen for every kernel, and why, as remarks">
  ];
  let statistics = [
    Statistic<"kernels", "kernels", "kernels made">,
    Statistic<"scratchBytes", "scratch-bytes",
              "bytes of scratch of the kernel that takes most">
  ];
  let dependentDialects = [
    "::sinkstate::ssk::SSKDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"
  ];
}

#endif // SINKSTATE_PASSES_SSTOSSK_PASSES_TD
