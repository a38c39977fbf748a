//===- Storage.h - Element types of stored rows -----------------*- C++ -*-===//
//
// Component rows and dense states lie in memory in one of these types; buffers,
// weights and log-decays are f32, and so is everything that is computed.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PACKAGE_STORAGE_H
#define SINKSTATE_PACKAGE_STORAGE_H

#include "numeric/Elements.h"

#include <optional>
#include <string_view>

namespace sinkstate::runtime {

using Storage = numeric::ElementType;
using numeric::elementBytes;
using numeric::loadElements;
using numeric::storeElements;

/// "f32", "f16", "bf16" or "fp8".
const char *storageName(Storage storage);
std::optional<Storage> storageByName(std::string_view name);

/// Whether a state may be a matrix of such elements. Those of 8 bits are parts
/// of rows of unit length.
constexpr bool holdsMatrices(Storage storage) {
  return storage != Storage::FP8;
}

/// The most that rounding to nearest changes a number by, as a share of it.
constexpr float roundingError(Storage storage) {
  switch (storage) {
  case Storage::F32:
    return 0;
  case Storage::F16:
    return 0x1p-11f;
  case Storage::BF16:
    return 0x1p-8f;
  case Storage::FP8:
    return 0x1p-4f;
  }
  return 0;
}
/// Magnitudes from here on are not for f16, which ends at 65504.
constexpr float kF16Beyond = 0x1p15f;

/// Whether a matrix keeps its digits in a storage. f16 has no exponents to
/// spare: what is near either end of them stays in factors, whose weights are
/// f32.
bool keepsDigits(Storage storage, float largestMagnitude);
bool keepsDigits(Storage storage, const float *elements, int64_t count);

} // namespace sinkstate::runtime

#endif
