//===- Quality.h - Bits per byte and divergence -----------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_QUALITY_H
#define SINKSTATE_TOOLS_SS_RUN_QUALITY_H

#include <cstdint>
#include <span>
#include <vector>

namespace ss_run {

/// Compares two models' predictions of the same text. All in double.
class Quality {
public:
  /// Adds one prediction of `next`. False where a logit is not finite; nothing
  /// has been added then.
  bool add(std::span<const float> dense, std::span<const float> compressed,
           uint8_t next);

  double bitsPerByteDense() const;
  double bitsPerByteCompressed() const;
  /// Mean Kullback-Leibler divergence of the compressed model's predictions
  /// from the dense one's, in nats.
  double divergence() const;

private:
  int64_t count = 0;
  double nats[2] = {0, 0};
  double divergenceSum = 0;
  std::vector<double> logDense, logCompressed;
};

/// log(softmax(logits)); false where a logit is not finite.
bool logSoftmax(std::span<const float> logits, std::vector<double> &out);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_QUALITY_H
