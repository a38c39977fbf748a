//===- Sinks.cpp - Mean values of heads -----------------------------------===//

#include "engine/Sinks.h"

#include "capi/Failure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinkstate::runtime {
namespace {

double dot(std::span<const float> a, const float *b) {
  return std::inner_product(a.begin(), a.end(), b, 0.0, std::plus<>(),
                            [](float x, float y) { return double(x) * y; });
}

} // namespace

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

std::vector<float> takeSinkOut(std::span<const float> mean, float *columns,
                               int64_t dk) {
  const double square = dot(mean, mean.data());
  if (!(square > 0))
    return {};
  std::vector<float> key(static_cast<size_t>(dk));
  for (int64_t k = 0; k < dk; ++k) {
    float *column = columns + k * int64_t(mean.size());
    const double share = dot(mean, column) / square;
    key[size_t(k)] = float(share);
    for (size_t v = 0; v < mean.size(); ++v)
      column[v] = float(column[v] - share * mean[v]);
  }
  return key;
}

float sinkRow(std::span<const float> mean, std::span<const float> key,
              float *row) {
  const double size = std::sqrt(dot(mean, mean.data()));
  const double length = std::sqrt(dot(key, key.data()));
  std::transform(key.begin(), key.end(), row, [&](float x) {
    return length > 0 ? float(x / length) : 0.0f;
  });
  std::transform(mean.begin(), mean.end(), row + key.size(),
                 [&](float x) { return float(x / size); });
  return float(length * size);
}

} // namespace sinkstate::runtime
