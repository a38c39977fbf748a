//===- Weights.h - The trained parameters -----------------------*- C++ -*-===//
#ifndef TINY_HYBRID_WEIGHTS_H
#define TINY_HYBRID_WEIGHTS_H

#include "Config.h"
#include "Result.h"

#include <Eigen/Core>
#include <string>
#include <vector>

namespace tiny_hybrid {

/// Rows are requests (activations) or outputs (weights).
using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = std::vector<float>;

/// A projection and the depthwise causal convolution behind it.
struct ConvolvedProjection {
  Matrix projection; ///< [out, hidden]
  Matrix filter;     ///< [out, width]; the last column meets the newest token
};

/// A recurrent layer. The three kinds differ in sizes and in which parts they
/// have; an empty matrix is a part that the kind does not have.
struct RecurrentWeights {
  ConvolvedProjection q, k, v; ///< mamba2: C, B and x
  Matrix gate;                 ///< gdn: a, mamba2: dt, kda: f1
  Matrix gateUp;               ///< kda: f2
  Matrix beta;                 ///< gdn, kda
  Matrix outputGate;           ///< gdn: g, mamba2: z, kda: g1
  Matrix outputGateUp;         ///< kda: g2
  Vector aLog, dtBias;
  Vector skip; ///< mamba2: D
  Vector norm;
  Matrix output;
};

struct AttentionWeights {
  Matrix q, k, v, output;
};

struct LayerWeights {
  Vector mixerNorm, mlpNorm;
  RecurrentWeights recurrent;
  AttentionWeights attention;
  Matrix mlpGate, mlpUp, mlpDown;
};

/// The parameters of a model in float32.
struct Weights {
  Matrix embedding; ///< [vocab, hidden]
  std::vector<LayerWeights> layers;
  Vector finalNorm;
  Matrix head; ///< [vocab, hidden]

  /// Reads a safetensors file that has every tensor of the configuration, in
  /// the configuration's shape, and no other.
  static Result<Weights> load(const std::string &path, const Config &config);
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_WEIGHTS_H
