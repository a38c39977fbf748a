//===- NextState.h - the state that is wanted next --------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_NEXTSTATE_H
#define SINKSTATE_PASSES_SSTOSSK_NEXTSTATE_H

#include "StateTables.h"

namespace sinkstate {

/// The factored state that the same thread works on next, which is asked for
/// while this one's rows are read: a thread that reads one state after the other
/// waits for memory at the beginning of each, whose rows and buffers lie apart.
/// No value depends on it.
class NextState {
public:
  /// `program`: of the next one, as batch row and head; its slot may be a padded
  /// row's.
  NextState(KernelBuilder &k, const LayerShape &shape,
            const KernelArguments &arguments, mlir::Value program);
  /// The state that is compacted next, whose extent `tables` has.
  explicit NextState(const StateTables &tables);

  /// Its component i, or buffered pair j, while this state's is worked on.
  void wantRow(mlir::Value i);
  void wantPair(mlir::Value j);
  /// What it has more of than the state at hand.
  void wantRowsFrom(mlir::Value first);
  void wantPairsFrom(mlir::Value first);
  /// One of kShares parts of its rows and pairs, each few requests.
  static constexpr int64_t kShares = 12;
  void wantShare(int64_t share);

private:
  /// Its inputs and its output.
  void wantToken(mlir::Value batchRow);

  KernelBuilder &k;
  const LayerShape &shape;
  const KernelArguments &arguments;
  StateTables tables;
  mlir::Value pairs; ///< those that are read, and the one that is written
};

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_NEXTSTATE_H
