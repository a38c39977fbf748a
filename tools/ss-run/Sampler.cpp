//===- Sampler.cpp - Draws bytes from a model's predictions ---------------===//

#include "Sampler.h"

#include "Quality.h"

#include <cmath>
#include <cstdio>

using namespace ss_run;

Sampler::Sampler(uint64_t seed, int request) {
  std::seed_seq sequence{static_cast<uint32_t>(seed),
                         static_cast<uint32_t>(seed >> 32),
                         static_cast<uint32_t>(request)};
  random.seed(sequence);
}

std::optional<uint8_t> Sampler::sample(std::span<const float> logits) {
  if (!logSoftmax(logits, logProbabilities))
    return std::nullopt;
  // 53 bits in [0, 1); the library's distributions differ between libraries.
  double rest = static_cast<double>(random() >> 11) * 0x1p-53;
  size_t likeliest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    rest -= std::exp(logProbabilities[i]);
    if (rest < 0)
      return static_cast<uint8_t>(i);
    if (logits[i] > logits[likeliest])
      likeliest = i;
  }
  return static_cast<uint8_t>(likeliest); // the sum rounded to below 1
}

std::string ss_run::printable(const std::string &bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    if ((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t') {
      text += static_cast<char>(byte);
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), "\\x%02x", byte);
    text += escaped;
  }
  return text;
}
