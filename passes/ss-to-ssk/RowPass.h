//===- RowPass.h - products with a state in one pass ------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_ROWPASS_H
#define SINKSTATE_PASSES_SSTOSSK_ROWPASS_H

#include "NextState.h"

namespace sinkstate {

/// Computes H x for several vectors x [dk] at once, reading every stored row,
/// every buffered pair or every dense row exactly once.
///
/// H is the state after its decays up to the log-decay G: component i counts
/// with `s_i exp(G)`, pair j with `exp(G - G_j)`; for channel decays the
/// factors multiply x or k elementwise (docs/state-math.md section 2).
class RowPass {
public:
  /// `rowsInFlight`: rows loaded together, the register axis of the row tiles.
  /// `parts`: sums that the stored rows are divided into and that are added up at
  /// the end; pairs belong to the last of them. More than one: ssk.parts, for
  /// several warps. `next`: the state whose memory is asked for meanwhile, or null.
  RowPass(StateTables &tables, int64_t rowsInFlight, int64_t parts = 1,
          NextState *next = nullptr)
      : t(tables), k(tables.k), rowsInFlight(rowsInFlight), parts(parts),
        next(next) {}

  /// `vectors`: tiles [dk]; returns one tile [dv] each, called by `names`.
  KernelBuilder::Values run(mlir::ValueRange vectors,
                            llvm::ArrayRef<llvm::StringRef> names,
                            mlir::Value logDecay);

private:
  using Values = KernelBuilder::Values;
  using Chunk = llvm::function_ref<Values(mlir::Value first, int64_t rows,
                                          mlir::Value limit, Values sums)>;
  /// Products with what is stored, pairs left out: of one part, or (null) of all.
  Values storedRows(mlir::Value part);
  Values components(Values sums);
  void storeCoefficients();
  Values denseRows(Values sums);
  Values bufferedPairs(Values sums);
  /// Runs `chunk` over the part's rows of [0, count), n rows at a time; those from
  /// `limit` on are masked. The parts take chunks in turn.
  Values overRows(mlir::Value count, Values sums, int64_t n, Chunk chunk);
  /// Pairs loaded together: few, as a buffer is half full on the average.
  int64_t pairsInFlight() const;
  /// Dense rows loaded together: each is one vector, and a state has many.
  int64_t denseInFlight() const;

  StateTables &t;
  KernelBuilder &k;
  int64_t rowsInFlight, parts;
  NextState *next;
  mlir::Value part; ///< at hand; null where there is one alone
  llvm::SmallVector<llvm::StringRef> names; ///< of the products
  Values vectors;        ///< as given, for the buffered pairs
  Values decayedVectors; ///< channel decay folded in, for what is older
  mlir::Value logDecay;
  mlir::Value scale; ///< exp(G) of a scalar decay; null for channel decays
  Values coefficients; ///< of dense rows, scratch
};

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_ROWPASS_H
