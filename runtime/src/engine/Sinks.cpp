//===- Sinks.cpp - Mean values of heads -----------------------------------===//

#include "engine/Sinks.h"

#include "capi/Failure.h"
#include "hash/Sha256.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

namespace sinkstate::runtime {
namespace {

double dot(std::span<const float> a, const float *b) {
  return std::inner_product(a.begin(), a.end(), b, 0.0, std::plus<>(),
                            [](float x, float y) { return double(x) * y; });
}

/// What a mean value is known by in snapshots (docs/hand-over.md): 0 for zeros,
/// otherwise the first 16 digits of the SHA-256 of its little-endian floats.
uint64_t hashOf(std::span<const float> mean) {
  if (!(dot(mean, mean.data()) > 0))
    return 0;
  std::string bytes;
  for (float value : mean)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(char(std::bit_cast<uint32_t>(value) >> shift));
  const std::string digits = sha256Hex(bytes).substr(0, 16);
  return std::max<uint64_t>(std::stoull(digits, nullptr, 16), 1);
}

} // namespace

LayerSinks LayerSinks::of(const LayerManifest &layer) {
  LayerSinks sinks;
  if (!layer.sinkForm)
    return sinks;
  sinks.directions.resize(size_t(layer.heads) * size_t(layer.dv));
  sinks.hashes.resize(size_t(layer.heads));
  return sinks;
}

void LayerSinks::set(std::span<const float> means) {
  const size_t width = means.size() / hashes.size();
  for (size_t head = 0; head < hashes.size(); ++head) {
    const std::span<const float> mean = means.subspan(head * width, width);
    hashes[head] = hashOf(mean);
    const double size = std::sqrt(dot(mean, mean.data()));
    std::transform(mean.begin(), mean.end(), directions.begin() + head * width,
                   [&](float x) { return size > 0 ? float(x / size) : 0.0f; });
  }
}

void checkSinks(const LayerManifest &layer, std::span<const float> means,
                int32_t slotInUse) {
  if (!layer.sinkForm)
    fail(SS_INVALID_ARGUMENT, "layer '", layer.name,
         "' has no sinks, expected a layer of form 'sink'");
  const int64_t expected = int64_t(layer.heads) * layer.dv;
  if (int64_t(means.size()) != expected)
    fail(SS_INVALID_ARGUMENT, means.size(), " mean values for layer '",
         layer.name, "', expected ", expected, " (", layer.heads, " heads of ",
         layer.dv, ")");
  for (size_t i = 0; i < means.size(); ++i)
    if (!std::isfinite(means[i]))
      fail(SS_INVALID_ARGUMENT, "means[", i, "] of layer '", layer.name,
           "' is not finite, expected finite numbers");
  if (slotInUse >= 0)
    fail(SS_INVALID_ARGUMENT, "slot ", slotInUse,
         " has an owner, whose states have the sinks of before; expected sinks "
         "before ss_slot_alloc");
}

std::vector<float> takeSinkOut(std::span<const float> direction, float *columns,
                               int64_t dk) {
  // Rounded to float32 its length is not 1 exactly.
  const double square = dot(direction, direction.data());
  if (!(square > 0))
    return {};
  std::vector<float> key(static_cast<size_t>(dk));
  for (int64_t k = 0; k < dk; ++k) {
    float *column = columns + k * int64_t(direction.size());
    const double share = dot(direction, column) / square;
    key[size_t(k)] = float(share);
    for (size_t v = 0; v < direction.size(); ++v)
      column[v] = float(column[v] - share * direction[v]);
  }
  return key;
}

float sinkRow(std::span<const float> direction, std::span<const float> key,
              float *row) {
  const double length = std::sqrt(dot(key, key.data()));
  std::transform(key.begin(), key.end(), row, [&](float x) {
    return length > 0 ? float(x / length) : 0.0f;
  });
  std::copy(direction.begin(), direction.end(), row + key.size());
  return float(length);
}

} // namespace sinkstate::runtime
