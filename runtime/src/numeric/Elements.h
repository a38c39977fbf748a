//===- Elements.h - Arrays of floats of several types -----------*- C++ -*-===//
//
// The one place where numbers in memory become f32 and come from there: rows
// and dense states as an engine stores them, arrays as a caller has them.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_NUMERIC_ELEMENTS_H
#define SINKSTATE_NUMERIC_ELEMENTS_H

#include "numeric/BinaryFloat.h"

#include <cstdint>

namespace sinkstate::numeric {

/// FP8: elements of rows of unit length, as e4m3 of 2^8 times the number.
enum class ElementType : uint8_t { F32, F16, BF16, FP8 };

constexpr int64_t elementBytes(ElementType type) {
  if (type == ElementType::FP8)
    return 1;
  return type == ElementType::F32 ? 4 : 2;
}

/// f32 where a format is expected.
struct F32 {
  using Bits = float;
  static constexpr float widen(float value) { return value; }
  static constexpr float narrow(float value) { return value; }
};

/// Elements of unit rows in 8 bits. passes/ss-to-ssk/KernelBuilder.h has the same
/// scale, which brings them to the middle of the format's exponents.
struct ScaledE4M3 {
  using Bits = E4M3::Bits;
  static constexpr float kScale = 256;
  static constexpr float widen(Bits bits) {
    return E4M3::widen(bits) * (1 / kScale);
  }
  static constexpr Bits narrow(float value) {
    return E4M3::narrow(value * kScale);
  }
};

/// Calls `body` with the format of a type: an F32, F16, BF16 or ScaledE4M3.
template <typename Body>
decltype(auto) withFormat(ElementType type, const Body &body) {
  switch (type) {
  case ElementType::F16:
    return body(F16());
  case ElementType::BF16:
    return body(BF16());
  case ElementType::FP8:
    return body(ScaledE4M3());
  case ElementType::F32:
    break;
  }
  return body(F32());
}

/// Elements from memory as f32, which is exact.
void loadElements(ElementType type, float *to, const void *from, int64_t count);
/// Rounds to nearest, ties to even; beyond the range of the type to infinity, or
/// to the largest number where there is none (FP8).
void storeElements(ElementType type, void *to, const float *from,
                   int64_t count);

} // namespace sinkstate::numeric

#endif
