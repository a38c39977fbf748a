//===- FloatFormat.h - Narrow formats by their definition -------*- C++ -*-===//
//
// What casts are compared with: every value of a format in a table, and rounding
// as a search in it. Shares nothing with the code under test.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_TEST_UNIT_NUMERIC_FLOATFORMAT_H
#define SINKSTATE_TEST_UNIT_NUMERIC_FLOATFORMAT_H

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace sinkstate::test {

class FloatFormat {
public:
  /// `special`: the first magnitude without a value: infinity, or NaN where the
  /// format has none and saturates.
  FloatFormat(int exponentBits, int fractionBits, int special, bool saturates)
      : signBit(1 << (exponentBits + fractionBits)), special(special),
        saturates(saturates) {
    const int bias = (1 << (exponentBits - 1)) - 1;
    for (int bits = 0; bits < special; ++bits) {
      const int exponent = bits >> fractionBits, fraction = bits & ((1 << fractionBits) - 1);
      finite.push_back(exponent == 0
                           ? std::ldexp(fraction, 1 - bias - fractionBits)
                           : std::ldexp(fraction + (1 << fractionBits),
                                        exponent - bias - fractionBits));
    }
  }
  static FloatFormat f16() { return {5, 10, 31 << 10, false}; }
  static FloatFormat bf16() { return {8, 7, 255 << 7, false}; }
  /// OCP e4m3, of whose largest exponent only 0x7f is not a number.
  static FloatFormat fp8() { return {4, 3, 0x7f, true}; }

  /// How many values there are, NaNs included.
  int count() const { return 2 * signBit; }

  bool isNaN(uint16_t bits) const {
    const int magnitude = bits & (signBit - 1);
    return saturates ? magnitude == special : magnitude > special;
  }

  /// The value of bits; exact.
  float decode(uint16_t bits) const {
    const int magnitude = bits & (signBit - 1);
    double value = magnitude < special ? finite[size_t(magnitude)]
                   : isNaN(bits)       ? std::numeric_limits<double>::quiet_NaN()
                                       : std::numeric_limits<double>::infinity();
    return float(std::copysign(value, bits & signBit ? -1.0 : 1.0));
  }

  /// To nearest, ties to even; half a step beyond the largest is infinite, or
  /// the largest where there is no infinity.
  uint16_t encode(float x) const {
    const int sign = std::signbit(x) ? signBit : 0;
    const double magnitude = std::fabs(double(x));
    if (std::isnan(x))
      return uint16_t(sign | (saturates ? special : special + 1));
    const double largest = finite.back(), before = finite[finite.size() - 2];
    if (magnitude >= largest + (largest - before) / 2)
      return uint16_t(sign | (saturates ? special - 1 : special));
    const auto above = std::lower_bound(finite.begin(), finite.end(), magnitude);
    int nearest = int(above - finite.begin());
    if (above == finite.end()) {
      --nearest;
    } else if (nearest > 0) {
      const double up = *above - magnitude, down = magnitude - *(above - 1);
      if (down < up || (down == up && nearest % 2 == 1))
        --nearest;
    }
    return uint16_t(sign | nearest);
  }

  /// Every value, what lies halfway between neighbours and next to that, and
  /// what f32 has beyond the format on both ends.
  std::vector<float> inputs() const {
    constexpr float inf = std::numeric_limits<float>::infinity();
    std::vector<float> all;
    auto add = [&](float x) {
      for (float each : {std::nextafter(x, -inf), x, std::nextafter(x, inf)})
        all.insert(all.end(), {each, -each});
    };
    for (size_t i = 0; i < finite.size(); ++i) {
      add(float(finite[i]));
      const double step = i + 1 < finite.size() ? finite[i + 1] - finite[i]
                                                : finite[i] - finite[i - 1];
      add(float(finite[i] + step / 2));
    }
    for (float x : {std::numeric_limits<float>::denorm_min(),
                    std::numeric_limits<float>::min(),
                    std::numeric_limits<float>::max(), 1e-41f, 1e5f, 1e38f})
      add(x);
    for (float x : {inf, std::numeric_limits<float>::quiet_NaN(),
                    std::bit_cast<float>(0x7f800001)})
      all.insert(all.end(), {x, -x});
    return all;
  }

private:
  int signBit, special;
  bool saturates;
  std::vector<double> finite; ///< values of the bits without sign
};

} // namespace sinkstate::test

#endif // SINKSTATE_TEST_UNIT_NUMERIC_FLOATFORMAT_H
