//===- Layers.h - The parts of a layer, one token of a batch ----*- C++ -*-===//
#ifndef TINY_HYBRID_LAYERS_H
#define TINY_HYBRID_LAYERS_H

#include "Weights.h"

namespace tiny_hybrid {

/// out = x weight^T, output columns shared out over the threads.
void project(const Matrix &x, const Matrix &weight, int threads, Matrix &out);

/// Root-mean-square norm of every run of weight.size() values of a row.
void rmsNorm(const Matrix &x, const Vector &weight, double epsilon,
             Matrix &out);

float sigmoid(float x);
/// x * sigmoid(x)
float silu(float x);

/// A depthwise causal convolution followed by silu, and the inputs of the last
/// tokens that it needs.
class CausalConvolution {
public:
  CausalConvolution(const Matrix &filter, int batch);

  /// Replaces the newest inputs by the outputs.
  void apply(Matrix &x);

private:
  const Matrix &filter;
  Matrix past; ///< [batch, channels * (width - 1)], oldest first per channel
};

/// Causal attention over everything a request has seen.
class Attention {
public:
  Attention(const AttentionSizes &sizes, const AttentionWeights &weights,
            int batch, int threads);

  /// x: [batch, hidden] of the token at `position`; out: [batch, hidden].
  void apply(const Matrix &x, int position, Matrix &out);

private:
  void rotate(Matrix &x, int position) const;
  void attend(int request, int head, int length);

  AttentionSizes sizes;
  const AttentionWeights &weights;
  int threads;
  std::vector<double> frequencies; ///< of the head's pairs, for rotate
  Matrix q, k, v, mixed;
  /// Per request: rotated keys and values of all its tokens.
  std::vector<Vector> keys, values;
};

/// down(silu(gate x) * up x)
class Mlp {
public:
  Mlp(const LayerWeights &weights, int threads)
      : weights(weights), threads(threads) {}
  void apply(const Matrix &x, Matrix &out);

private:
  const LayerWeights &weights;
  int threads;
  Matrix gate, up;
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_LAYERS_H
