//===- LayerLayout.h - Sizes of the states of one layer ---------*- C++ -*-===//
//
// Everything that follows from a layer's manifest and the number of slots:
// shapes, capacity classes, the break-even rank and the bytes of each part.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_STATE_LAYERLAYOUT_H
#define SINKSTATE_STATE_LAYERLAYOUT_H

#include "device/Device.h"
#include "package/Manifest.h"

#include <cstdint>
#include <vector>

namespace sinkstate::runtime {

struct LayerLayout {
  LayerLayout(const LayerManifest &layer, int32_t slots, bool denseFallback);

  int64_t states;    ///< slots * heads
  Storage storage;   ///< of rows and dense states
  int64_t rowFloats; ///< elements of a row: dk + dv
  int64_t denseFloats;
  int64_t denseRows; ///< rows that a dense state takes in the pool
  /// Smallest rank whose factors are no smaller than the dense state.
  int64_t breakEvenRank;
  bool denseFallback; ///< states of this layer may go dense
  bool fixedRank;     ///< policy fixed: no frozen part
  float dropBelow;    ///< eps of consolidation and of the return to factors

  // Kernel arguments.
  float policyValue;
  int32_t maxRank;

  std::vector<int64_t> classes; ///< capacities of the row pool, ascending
  /// Rows that a state may need at most, in its own block.
  int64_t mostRows;

  // Floats of the buffers and of a dense-form layer's states, of all slots.
  int64_t bufferKFloats, bufferUFloats, bufferGFloats, denseFormFloats;

  int64_t rowBytes() const { return rowFloats * elementBytes(storage); }
  /// Bytes of a dense state as it is stored; where the storage holds none, of
  /// one in 16 bits, to compare with.
  int64_t denseStateBytes() const {
    return denseFloats *
           (holdsMatrices(storage) ? elementBytes(storage) : 2);
  }

  /// Bytes that the rows, or the matrix (rank -1), of a state fill.
  int64_t storedBytes(int64_t rank) const {
    return rank < 0 ? denseStateBytes() : rank * (rowBytes() + 4);
  }

  /// Bytes of one state by the formula of docs/state-math.md section 7.
  /// `hasSink`: its first row, where it has any, is the sink of its head.
  int64_t liveBytes(int64_t rank, bool hasSink) const;
  /// What a sink takes less than another row: all requests share its value.
  int64_t sharedBytes() const { return valueFloats * elementBytes(storage); }

  /// Bytes of an array within a layer's reservation, its alignment included.
  static size_t partBytes(int64_t count, size_t elementBytes);
  /// Bytes of buffers, tables and dense-form states, in whole pages.
  int64_t fixedBytes(const Device &device) const;
  int64_t worstCaseBytes(const Device &device) const;
  int64_t expectedBytes(const Device &device) const;
  /// Bytes of all states as dense ones in f32, to compare with.
  int64_t denseBytes() const { return states * denseFloats * 4; }

private:
  void setPolicy(const LayerManifest &layer);
  void setClasses(const LayerManifest &layer);

  int64_t slots, rankBound, buffer, valueFloats;
  bool denseForm, deferred;
};

} // namespace sinkstate::runtime

#endif
