//===- LayerMemory.h - The tables of one layer, for single kernels -*- C++ -*-===//
//
// The tables of docs/interfaces.md section 3 in host memory, to be filled by a
// test, and the kernels of a package launched on them one by one; a back end on
// a GPU carries them there and back at every launch. Every byte
// that a test does not write is 0xFF: a NaN, or a count that is out of bounds.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONFORMANCE_LAYERMEMORY_H
#define SINKSTATE_CONFORMANCE_LAYERMEMORY_H

#include "BackEnd.h"
#include "StateView.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace sinkstate::conformance {

/// A float array whose untouched elements are NaN, aligned for any kernel.
class FloatArray {
public:
  explicit FloatArray(int64_t size);
  float *data() { return storage.data() + offset; }
  int64_t size() const { return count; }
  std::vector<float> copy() const;

private:
  std::vector<float> storage;
  int64_t offset, count;
};

class LayerMemory {
public:
  /// Every state starts with rank 0 and an empty buffer, and has room for the
  /// layer's bound of rows.
  LayerMemory(const reference::LayerSpec &layer, int32_t slots);

  const reference::LayerSpec layer;
  const int32_t slots;

  int64_t states() const { return int64_t(slots) * layer.heads; }
  float *row(int64_t state, int64_t i) {
    return rows.data() + (rowBase[size_t(state)] + i) * (layer.dk + layer.dv);
  }
  float &weight(int64_t state, int64_t i) {
    return weights.data()[rowBase[size_t(state)] + i];
  }
  float *key(int64_t state, int64_t pair);
  float *update(int64_t state, int64_t pair);
  float *logDecay(int64_t state, int64_t pair);
  int64_t decayChannels() const { return layer.channelDecay() ? layer.dk : 1; }

  /// Stores a component v [dk], u [dv] behind those that are there.
  void addComponent(int64_t state, double weight,
                    const std::vector<double> &v,
                    const std::vector<double> &u);
  /// Stores pair `pair` of a state; does not change the slot's count.
  void setPair(int64_t state, int64_t pair, const std::vector<double> &k,
               const std::vector<double> &u, double runningLogDecay);

  /// H [dk, dv] in float64, from the tables as they are.
  std::vector<double> matrix(int64_t state);
  /// Every byte of the tables, for comparison.
  std::vector<uint8_t> bytes();

  FloatArray rows, weights, bufferK, bufferU, bufferG;
  std::vector<int64_t> rowBase;
  std::vector<int32_t> rank, status, count;
};

/// Launches single kernels of a model.
class KernelLauncher {
public:
  KernelLauncher(const Model &model, size_t layer);

  struct CompactArguments {
    float policyValue = 0;
    int32_t maxRank = std::numeric_limits<int32_t>::max();
    int32_t countAhead = 0;
    std::vector<int32_t> rowCapacity = {}; ///< [states]; empty: no limit
  };
  /// Compacts the listed states; counts stay as they are.
  void compact(LayerMemory &memory, const std::vector<int32_t> &work,
               const CompactArguments &arguments) const;
  /// H [dk, dv] as the densify kernel writes it, with `countAhead` pairs beyond
  /// the slot's count.
  std::vector<float> densify(LayerMemory &memory, int32_t state,
                             int32_t countAhead = 0) const;

  struct DecodeArguments {
    std::vector<int32_t> slots;
    std::vector<float> q, k, v, gate, beta; ///< packed rows of the batch
    std::vector<float> aLog, dtBias;
    std::vector<int32_t> order; ///< of programs; empty: their own
  };
  /// y [batch, heads, dv]; programs run in launches of `programsAtOnce`.
  std::vector<float> decode(LayerMemory &memory,
                            const DecodeArguments &arguments,
                            int64_t programsAtOnce = INT64_MAX) const;

private:
  /// A kernel and its arguments' names in order.
  struct Kernel {
    std::string name;
    std::vector<std::string> arguments;
  };
  class Values;

  void launch(const Kernel &kernel, const Values &values, int64_t programs,
              int64_t programsAtOnce = INT64_MAX) const;

  const Model &model;
  Kernel decodeKernel, compactKernel, densifyKernel;
};

} // namespace sinkstate::conformance

#endif
