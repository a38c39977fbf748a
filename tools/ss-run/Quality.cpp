//===- Quality.cpp - Bits per byte and divergence -------------------------===//

#include "Quality.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace ss_run;

bool ss_run::logSoftmax(std::span<const float> logits,
                        std::vector<double> &out) {
  double largest = -INFINITY;
  for (float logit : logits) {
    if (!std::isfinite(logit))
      return false;
    largest = std::max(largest, static_cast<double>(logit));
  }
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(logit - largest);
  const double normalizer = largest + std::log(sum);
  out.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    out[i] = logits[i] - normalizer;
  return true;
}

bool Quality::add(std::span<const float> dense,
                  std::span<const float> compressed, uint8_t next) {
  if (!logSoftmax(dense, logDense) || !logSoftmax(compressed, logCompressed))
    return false;
  nats[0] -= logDense[next];
  nats[1] -= logCompressed[next];
  for (size_t i = 0; i < logDense.size(); ++i)
    divergenceSum += std::exp(logDense[i]) * (logDense[i] - logCompressed[i]);
  ++count;
  return true;
}

double Quality::bitsPerByteDense() const {
  return nats[0] / count / std::numbers::ln2;
}
double Quality::bitsPerByteCompressed() const {
  return nats[1] / count / std::numbers::ln2;
}
double Quality::divergence() const { return divergenceSum / count; }
