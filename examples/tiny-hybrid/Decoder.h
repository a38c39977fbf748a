//===- Decoder.h - Token by token through the model -------------*- C++ -*-===//
#ifndef TINY_HYBRID_DECODER_H
#define TINY_HYBRID_DECODER_H

#include "Config.h"
#include "Layers.h"
#include "StateBackend.h"
#include "Weights.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tiny_hybrid {

/// A model folder: config.json and model.safetensors.
struct Model {
  Config config;
  Weights weights;

  static Result<Model> load(const std::string &folder);
};

/// Seconds since the decoder was made.
struct DecodeTimes {
  double states = 0; ///< inside the state backend
  double all = 0;
};

/// Decodes a batch of requests in step, all at the same position. The model
/// and the backend must outlive it.
class Decoder {
public:
  Decoder(const Model &model, StateBackend &states, int batch, int threads);
  ~Decoder();

  /// Feeds one token to every request; afterwards logits() has what follows.
  /// On an error the decoder cannot be used any more.
  Status step(std::span<const uint8_t> tokens);

  /// [batch, vocab]
  const Matrix &logits() const { return output; }
  int position() const { return steps; }
  const DecodeTimes &times() const { return elapsed; }

private:
  struct RecurrentLayer;
  struct Layer;

  Status applyRecurrent(int index, Layer &layer);
  void finishRecurrent(LayerKind kind, const RecurrentWeights &weights,
                       RecurrentLayer &layer);

  const Model &model;
  StateBackend &states;
  int batch;
  int threads;
  int steps = 0;
  DecodeTimes elapsed;
  std::vector<Layer> layers;
  Matrix stream;     ///< the residual stream, [batch, hidden]
  Matrix normalized; ///< the input of the part that runs now
  Matrix part;       ///< and its output
  Matrix output;
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_DECODER_H
