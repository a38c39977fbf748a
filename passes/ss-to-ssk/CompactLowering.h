//===- CompactLowering.h - local SVD of one state ---------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_COMPACTLOWERING_H
#define SINKSTATE_PASSES_SSTOSSK_COMPACTLOWERING_H

#include "Lowerings.h"

namespace sinkstate {

/// Lowers the operations of one fused compaction, each to its own tile
/// operations, for the state of one program (docs/state-math.md section 3).
///
/// The block of m = active + capacity components lies in scratch as rows of
/// `left` [m, dv] and `right` [m, dk]; absent ones are zero rows. Both sides are
/// orthogonalised through float64 Gram matrices: `Q = T A` with `R = T G`. The
/// matrices T stay apart and are multiplied into the rotation, so that the rows
/// are formed once, `U' = (X^T T) A`. Where a Gram matrix is too ill-conditioned
/// for that, Q is formed and orthogonalised a second time.
class CompactLowering {
public:
  CompactLowering(ss::FusedOp fused, StateTables &tables)
      : fused(fused), t(tables), k(tables.k), m(tables.shape.block()) {}
  mlir::LogicalResult run();

private:
  using Values = KernelBuilder::Values;

  // One per operation of the graph.
  void split();
  void concat();
  void orthogonalize();
  void core();
  void coreSvd();
  void rotate();
  void merge();
  mlir::LogicalResult truncate(ss::PolicyAttr policy);

  // Parts of them.
  void allocate();
  void foldScalarDecay();
  void foldChannelDecay();
  void gatherActive();
  void foldPair(mlir::Value j, mlir::Value row);
  void zeroBlockRow(mlir::Value row);
  void orthogonalizeSide(mlir::Value side, int64_t columns, mlir::Value t,
                         mlir::Value r);
  void copyMatrix(mlir::Value from, mlir::Value to, int64_t rows,
                  int64_t columns, mlir::Type element);
  mlir::Value largestWeight();
  mlir::Value threshold(ss::PolicyAttr policy, mlir::Value largest);
  mlir::Value energyThreshold(mlir::Value lowest);
  /// Marks what max_rank has no room for: weight -1.
  void limitRank(mlir::Value threshold);
  void dropBeyond(mlir::Value most);
  /// Ranks all weights, old and new; returns the ranking and its length.
  std::pair<mlir::Value, mlir::Value> rankWeights();
  /// Weight of rank i, at least 0.
  mlir::Value rankedWeight(mlir::Value i);
  mlir::Value keptNew(ss::PolicyAttr policy, mlir::Value threshold);
  void placeRows(mlir::Value threshold, mlir::Value kept);
  /// Calls `body` for every chunk of [0, count) of a list of at most `bound`
  /// weights with the tile type of a chunk, its first index and its length.
  void overWeights(int64_t bound, mlir::Value count,
                   llvm::function_ref<void(mlir::Type, mlir::Value,
                                           mlir::Value)> body);
  void writeNewRow(mlir::Value from, mlir::Value to);
  void moveRow(mlir::Value from, mlir::Value to);
  void storeWeights(mlir::Value rank);
  void poison();
  void addStatus(mlir::Value bits);

  ss::FusedOp fused;
  StateTables &t;
  KernelBuilder &k;
  int64_t m;
  mlir::Value logDecay;               ///< of the whole buffer
  mlir::Value weights;                ///< [rank bound] f32, active ones -1 later
  mlir::Value order;                  ///< [active] i32: rows of the active ones
  mlir::Value left, right, blockWeights;
  mlir::Value tLeft, tRight, rLeft, rRight, gram, work, coreMatrix;
  mlir::Value xt, sigma, yt;
  mlir::Value newLeft, newRight, newWeights;
  mlir::Value allWeights, ranking;    ///< only where weights are ranked
  mlir::Value status; ///< [1] i32 in scratch: bits of the routines so far
};

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_COMPACTLOWERING_H
