//===- Lowerings.h - fused ss functions to ssk kernels ----------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_LOWERINGS_H
#define SINKSTATE_PASSES_SSTOSSK_LOWERINGS_H

#include "StateTables.h"
#include "dialect/ss/SS.h"

namespace sinkstate {

/// Choices that are not in the graph.
struct KernelChoices {
  int64_t rowsInFlight = 4; ///< rows of a state loaded together
  /// Parts of a state whose sums a decode adds up: one warp each, or one for all.
  int64_t parts = 1;
  bool asksAhead = false;   ///< for the memory of the next state
  bool formsKept = false;   ///< a compaction forms no rows that it drops
  /// A compaction forms orthonormal rows at once, and keeps fewer matrices.
  bool sparesScratch = false;
};

/// Each fills the body of a kernel whose insertion point `k` stands at, from
/// the operations of one fused region, or reports what it cannot lower.
mlir::LogicalResult lowerDecode(ss::FusedOp fused, const LayerShape &shape,
                                const KernelArguments &arguments,
                                const KernelChoices &choices,
                                KernelBuilder &k);
/// The step of a deferred state whose buffer is full: one pass over its matrix
/// writes the pairs into it and computes H x for the vectors x [dk], at the
/// token's log-decay. Returns a tile [dv] each.
KernelBuilder::Values foldAndMultiply(StateTables &tables,
                                      const KernelChoices &choices,
                                      mlir::ValueRange vectors,
                                      mlir::Value logDecay);
mlir::LogicalResult lowerDenseDecode(ss::FusedOp fused,
                                     const LayerShape &shape,
                                     const KernelArguments &arguments,
                                     const KernelChoices &choices,
                                     KernelBuilder &k);
mlir::LogicalResult lowerCompact(ss::FusedOp fused, const LayerShape &shape,
                                 const KernelArguments &arguments,
                                 const KernelChoices &choices,
                                 KernelBuilder &k);
mlir::LogicalResult lowerDensify(ss::FusedOp fused, const LayerShape &shape,
                                 const KernelArguments &arguments,
                                 const KernelChoices &choices,
                                 KernelBuilder &k);

mlir::LogicalResult lowerInit(ss::FusedOp fused, const LayerShape &shape,
                              const KernelArguments &arguments,
                              const KernelChoices &choices, KernelBuilder &k);

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_LOWERINGS_H
