//===- CompactLowering.h - compaction of one state --------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_COMPACTLOWERING_H
#define SINKSTATE_PASSES_SSTOSSK_COMPACTLOWERING_H

#include "Lowerings.h"
#include "NextState.h"
#include <optional>

namespace sinkstate {

/// Lowers the operations of one fused compaction, each to its own tile
/// operations, for the state of one program (docs/state-math.md section 3).
///
/// The block of m = active + capacity components lies in scratch as rows of
/// `left` [m, dv] and `right` [m, dk]; absent ones are zero rows. Both sides are
/// orthogonalised through float64 Gram matrices: `Q = T A` with `R = T G`. The
/// matrices T stay apart and are multiplied into the rotation, so that the rows
/// are formed once, in place, `U' = (X^T T) A`. Where a Gram matrix is too
/// ill-conditioned for that, Q is formed and orthogonalised a second time.
///
/// With `core = svd` (CoreLowering.cpp) both sides are orthogonalised by
/// themselves and what is between them is decomposed. With `core = qr`
/// (SideLowering.cpp) the second side is orthogonalised after the first one's
/// factor R has been multiplied into it, `H = (R A)^T Q = (Q_2^T R_2) Q`.
///
/// Where scratch is short (`sparesScratch` of KernelChoices) each Q is formed as
/// soon as its T is known, and rounded once more: three matrices [m, m] live at
/// the same time, instead of five (svd) or four (qr).
class CompactLowering {
public:
  /// `rowsInFlight`: rows that are moved together. `next`: the state whose memory
  /// is asked for meanwhile, or null.
  CompactLowering(ss::FusedOp fused, StateTables &tables, int64_t rowsInFlight,
                  const KernelChoices &choices, NextState *next)
      : fused(fused), t(tables), k(tables.k), m(tables.shape.block()),
        rowsInFlight(rowsInFlight), formsKept(choices.formsKept),
        sparesScratch(choices.sparesScratch), next(next) {
    left.name = "left";
    left.columns = tables.shape.dv;
    right.name = "right";
    right.columns = tables.shape.dk;
  }
  mlir::LogicalResult run();

private:
  using Values = KernelBuilder::Values;

  /// One side of the block and what is known of it.
  struct BlockSide {
    llvm::StringRef name;
    int64_t columns;
    mlir::Value rows; ///< [m, columns] f32, rotated in place
    mlir::Value t, r; ///< [m, m] f64: `t rows` is orthonormal; its factor
    /// New rows that are not formed yet: the product of these, and `rows`.
    mlir::Value by, with;
    mlir::Value formed; ///< [m, columns] f32: those that stay; null: all in `rows`
  };

  // One per operation of the graph.
  void split();
  void concat();
  void orthogonalize();
  void core();
  void coreSvd();
  void rotate();
  mlir::LogicalResult orthogonalizeSide(ss::OrthogonalizeSideOp op);
  mlir::LogicalResult merge(ss::MergeOp op);
  mlir::LogicalResult truncate(ss::PolicyAttr policy);

  // Parts of them.
  void allocate();
  void findSink();
  mlir::Value decayedSink();
  mlir::Value takeSinkOut(mlir::Value sink);
  void separateSink();
  /// Writes how many components of content the state has now.
  void writeRank(mlir::Value rank);
  void foldScalarDecay();
  mlir::Value decayedKeys(mlir::Value v, mlir::Value factor);
  mlir::Value scaledRows(mlir::Value v, mlir::Value inverse);
  mlir::Value channelFactor();
  mlir::Value storedWeights(mlir::Value i, mlir::Value limit);
  /// Null where `inverses` has them.
  mlir::Value weighRows(mlir::Value v, mlir::Value w, mlir::Value i,
                        mlir::Value limit);
  /// Calls `body` with the decayed keys of all stored rows, a few at a time, the
  /// first one's number and how many are left (null: one at a time).
  void overKeys(
      llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value)> body);
  void weighDecayedRows();
  void foldChannelDecay();
  void foldWeighedRows();
  void gatherActive();
  void widenActive();
  void widenRows();
  /// Buffered keys and the log-decays up to them, a few pairs' of each.
  struct DecayedKeys {
    mlir::Value keys, decays;
  };
  int64_t keysInFlight() const;
  DecayedKeys loadKeys(mlir::Value j);
  void foldKeys();
  int64_t manyRows() const;
  mlir::Value groupStride() const; ///< of manyRows(); null: a single one
  void weighPairs();
  mlir::Value matrix(llvm::StringRef name) {
    return k.name(name, k.shared({m, m}, k.f64()));
  }
  mlir::Type matrixRow() { return k.lanes({m}, k.f64()); }
  /// Calls `body` with the number of rows of a part of a matrix and its first row.
  void overMatrix(llvm::function_ref<void(int64_t, mlir::Value)> body);
  /// Multiplies the rows and the columns of a matrix with the elements of
  /// vectors in scratch; null: by nothing.
  void scaleMatrix(mlir::Value matrix, mlir::Value ofRows,
                   mlir::Value ofColumns);
  /// T and R of a Gram matrix, which R replaces; true where rows are so nearly
  /// dependent that `T A` has to be orthogonalised once more.
  mlir::Value callOrthogonalize(mlir::Value gram, mlir::Value factor);
  /// `scratch` is wanted where that happens, and null where `core` does it.
  mlir::Value orthogonalizeAlone(BlockSide &side, mlir::Value scratch);
  void orthogonalizeSparingly();
  /// Puts Q = T A in the place of A.
  void formOrthonormal(BlockSide &side);
  /// Puts Q = T A in the place of A and makes T and R those of Q; R of A is
  /// the product of both.
  void orthogonalizeAgain(BlockSide &side, mlir::Value r, mlir::Value scratch);
  void orthogonalizeFirst(BlockSide &side, BlockSide &other);
  void orthogonalizeSecond(BlockSide &side, BlockSide &first);
  void measureComponents(BlockSide &other);
  mlir::Value unfoldSizes(BlockSide &side);
  void measureLengths(mlir::Value r);
  mlir::Value isUncertain(mlir::Value r);
  void normaliseRows(mlir::Value r);
  mlir::Value largestWeight();
  mlir::Value threshold(ss::PolicyAttr policy, mlir::Value largest);
  mlir::Value energyThreshold(mlir::Value lowest);
  /// Drops what max_rank has no room for; returns the number of new components
  /// to keep, `kept` where there is room for all.
  mlir::Value limitRank(ss::PolicyAttr policy, mlir::Value threshold,
                        mlir::Value kept);
  mlir::Value limitToBlock(mlir::Value kept);
  /// The new rows of one side are `by` its rows; or `by` times `with`, which goes
  /// to `product`. Forms them, or where only those that stay are formed notes how.
  void formRows(BlockSide &side, mlir::Value by, mlir::Value with = {},
                mlir::Value product = {});
  /// Forms those that stay, in the order in which they are written.
  void formKeptRows(mlir::Value kept);
  /// Between two pieces of work: asks for a share of the next state's memory.
  void askAhead();
  void dropBeyond(mlir::Value most);
  /// Ranks all weights, old and new.
  void rankWeights();
  /// Weight of rank i, at least 0.
  mlir::Value rankedWeight(mlir::Value i);
  /// The number of new components to keep: the first ones, or where they are
  /// not sorted those that `newOrder` lists.
  mlir::Value keptNew(ss::PolicyAttr policy, mlir::Value threshold);
  mlir::Value listKept(ss::PolicyAttr policy, mlir::Value threshold);
  void placeRows(mlir::Value threshold, mlir::Value kept);
  /// Moves the last rows to the places of dropped ones; returns the new rank.
  Values fillPlaces(mlir::Value threshold);
  /// Calls `body` for every chunk of [0, count) of a list of at most `bound`
  /// weights with the tile type of a chunk, its first index and its length.
  void overWeights(int64_t bound, mlir::Value count,
                   llvm::function_ref<void(mlir::Type, mlir::Value,
                                           mlir::Value)> body);
  /// Writes new components from number `first` on to their places, those below
  /// `kept`.
  void writeNewRows(mlir::Value first, mlir::Value kept, mlir::Value free);
  void moveRow(mlir::Value from, mlir::Value to);
  void storeWeights(mlir::Value rank);
  void poison();
  void addStatus(mlir::Value bits);

  ss::FusedOp fused;
  StateTables &t;
  KernelBuilder &k;
  int64_t m;
  int64_t rowsInFlight;
  bool formsKept; ///< rows are formed when it is known which of them stay
  bool sparesScratch;
  NextState *next;
  int64_t shares = 0; ///< asked for so far
  // Form sink only (SinkLowering.cpp).
  mlir::Value sinkDirection;          ///< tile of unit length, or zeros
  mlir::Value directionSquare;        ///< f64
  mlir::Value hasSink, wasStored;     ///< i1: not zeros; a sink is stored
  mlir::Value sinkRows;               ///< 0 or 1; null without the form
  mlir::Value logDecay;               ///< of the whole buffer
  mlir::Value weights;                ///< [rank bound] f32, active ones -1 later
  mlir::Value order;                  ///< [active] i32: rows of the active ones
  // Layers with a decay a channel only.
  DecayedKeys firstKeys;     ///< all pairs', under way; or null
  mlir::Value inverses;      ///< [rank bound] f32: of decayed lengths; narrow rows
  mlir::Value inversesOfGroup; ///< f32: the same of a group of rows of 32 bits
  BlockSide left, right;
  mlir::Value blockWeights;
  std::optional<ss::Side> firstSide; ///< that has been orthogonalised
  bool hasBothSides = false;
  mlir::Value lengths, sizes;        ///< [m] f64: of components, core qr
  mlir::Value largest;               ///< size of the largest one
  mlir::Value noise;                 ///< weights below are rounding, or null
  mlir::Value inverseLengths;        ///< [m] f64: 1 / sigma, or 0
  mlir::Value yt;                    ///< right singular vectors
  mlir::Value isRightIll; ///< Q of the right side is orthogonalised once more
  mlir::Value sigma;                 ///< [m] f64
  mlir::Value newWeights;            ///< [m] f32
  mlir::Value newOrder; ///< new components that stay; null if they are sorted
  mlir::Value places;   ///< [m + 1] i32: rows that are free for them
  mlir::Value allWeights, ranking;    ///< only where weights are ranked
  mlir::Value total;                  ///< how many; null: not ranked yet
  mlir::Value status; ///< [1] i32 in scratch: bits of the routines so far
};

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_COMPACTLOWERING_H
