//===- BinaryFloat.h - Floats of few bits, by their definition --*- C++ -*-===//
//
// Conversions between f32 and the formats that have a sign, exponent and
// fraction in that order, subnormal numbers, infinities (or none) and NaNs. Integers do
// the work, so that neither the rounding mode nor a flush to zero that a caller
// has set for its thread changes a result.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_NUMERIC_BINARYFLOAT_H
#define SINKSTATE_NUMERIC_BINARYFLOAT_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace sinkstate::numeric {

/// Without infinity all bits of NaN but the sign are set, the largest exponent
/// is one of numbers, and what is beyond the range saturates.
template <int ExponentBits, int FractionBits, bool HasInfinity = true>
struct BinaryFloat {
  static_assert(ExponentBits <= 8 && FractionBits < 23);
  using Bits =
      std::conditional_t<(ExponentBits + FractionBits < 8), uint8_t, uint16_t>;

  /// The value as f32, which is exact. NaN stays NaN.
  static constexpr float widen(Bits bits) {
    const uint32_t sign = uint32_t(bits) >> kMagnitudeBits << 31;
    const uint32_t magnitude = bits & ((1u << kMagnitudeBits) - 1);
    uint32_t wide = (magnitude << kDropped) + (kBiasDifference << 23);
    if (HasInfinity && magnitude >= kInfinity)
      wide = kInfinity32 | magnitude << kDropped;
    else if (!HasInfinity && magnitude == kNaN)
      wide = kInfinity32 | 1u << 22;
    else if (kBiasDifference != 0 && magnitude >> FractionBits == 0)
      // Subnormal here and normal as f32.
      wide = std::bit_cast<uint32_t>(float(magnitude) * kLeast);
    return std::bit_cast<float>(sign | wide);
  }

  /// Rounds to nearest, ties to even; beyond the range to infinity, or to the
  /// largest number. NaN stays NaN, and keeps its sign.
  static constexpr Bits narrow(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 31 << kMagnitudeBits;
    const uint32_t wide = bits & 0x7fffffff;
    if (wide > kInfinity32 && !HasInfinity)
      return Bits(sign | kNaN);
    if (wide > kInfinity32)
      return Bits(sign | kInfinity | 1u << (FractionBits - 1) |
                  (wide & 0x7fffff) >> kDropped);
    const uint32_t exponent = wide >> 23;
    if (exponent > kBiasDifference) {
      const uint32_t rounded = shiftRounded(wide - (kBiasDifference << 23),
                                            kDropped);
      return Bits(sign | std::min(rounded, HasInfinity ? kInfinity : kNaN - 1));
    }
    // Subnormal here: a multiple of the least number.
    const uint32_t fraction =
        (wide & 0x7fffff) | (exponent != 0 ? 1u << 23 : 0);
    return Bits(sign | shiftRounded(fraction, kDropped + kBiasDifference + 1 -
                                                  std::max(exponent, 1u)));
  }

private:
  static constexpr int kMagnitudeBits = ExponentBits + FractionBits;
  static constexpr uint32_t kDropped = 23 - FractionBits; ///< fraction bits
  static constexpr uint32_t kBiasDifference = 128 - (1u << (ExponentBits - 1));
  static constexpr uint32_t kInfinity = ((1u << ExponentBits) - 1)
                                        << FractionBits;
  static constexpr uint32_t kNaN = (1u << kMagnitudeBits) - 1;
  static constexpr uint32_t kInfinity32 = 0x7f800000;
  /// The least positive number, where it is normal as f32.
  static constexpr float kLeast =
      kBiasDifference < uint32_t(FractionBits)
          ? 0
          : std::bit_cast<float>((kBiasDifference + 1 - FractionBits) << 23);
  static_assert(kBiasDifference == 0 || kBiasDifference >= FractionBits);

  /// value / 2^shift, to nearest, ties to even.
  static constexpr uint32_t shiftRounded(uint32_t value, uint32_t shift) {
    if (shift > 25) // less than half, as `value` has 24 bits where shift is large
      return 0;
    return (value + (1u << (shift - 1)) - 1 + (value >> shift & 1)) >> shift;
  }
};

using F16 = BinaryFloat<5, 10>;
using BF16 = BinaryFloat<8, 7>;
/// OCP e4m3.
using E4M3 = BinaryFloat<4, 3, false>;

} // namespace sinkstate::numeric

#endif
