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
    exponent is at most 0.
  }];
  let options = [
    Option<"rowsInFlight", "rows-in-flight", "int64_t", /*default=*/"4",
           "rows of a state that a decode kernel of the delta rule loads together; "
           "where more than one, kernels without it load twice as many">,
    Option<"programsPerBlock", "programs-per-block", "int64_t", /*default=*/"4",
           "programs (warps) of a block on a GPU">
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
