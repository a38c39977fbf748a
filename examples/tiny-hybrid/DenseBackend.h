//===- DenseBackend.h - States as plain matrices ----------------*- C++ -*-===//
#ifndef TINY_HYBRID_DENSE_BACKEND_H
#define TINY_HYBRID_DENSE_BACKEND_H

#include "Config.h"
#include "StateBackend.h"

#include <vector>

namespace tiny_hybrid {

/// The recurrence written down once more, in float32 and without any
/// compression: the reference that everything else is compared with.
class DenseBackend : public StateBackend {
public:
  DenseBackend(const Config &config, int batch, int threads);

  Status decodeLayer(int layer, const StateInput &input, float *y) override;
  Status endStep() override { return std::nullopt; }

  /// H of every request and head of a recurrent layer, [batch, heads, dk, dv].
  const std::vector<float> &states(int layer) const {
    return layers[static_cast<size_t>(layer)].states;
  }

private:
  struct Layer {
    LayerKind kind;
    RecurrentSizes sizes;
    /// H of every request and head, stored as its transpose [dk, dv], so that
    /// inner loops run over contiguous values of independent rows of H.
    std::vector<float> states;
  };

  void decodeHead(Layer &layer, const StateInput &input, int request, int head,
                  float *y) const;

  int batch;
  int threads;
  std::vector<Layer> layers; ///< One per model layer; attention has no states.
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_DENSE_BACKEND_H
