//===- Sampler.h - Draws bytes from a model's predictions -------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_SAMPLER_H
#define SINKSTATE_TOOLS_SS_RUN_SAMPLER_H

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace ss_run {

/// One request's stream of random choices: the same seed and request always
/// choose the same bytes from the same predictions.
class Sampler {
public:
  Sampler(uint64_t seed, int request);

  /// A byte with the probability that softmax(logits) gives it; nothing where a
  /// logit is not finite.
  std::optional<uint8_t> sample(std::span<const float> logits);

private:
  std::mt19937_64 random;
  std::vector<double> logProbabilities;
};

/// The bytes as they may be written to a terminal: control characters other
/// than line breaks and tabs become \xNN.
std::string printable(const std::string &bytes);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_SAMPLER_H
