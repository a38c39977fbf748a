//===- FloatFormat.h - 16-bit formats by their definition -------*- C++ -*-===//
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
  FloatFormat(int exponentBits, int fractionBits)
      : infinity(((1 << exponentBits) - 1) << fractionBits) {
    const int bias = (1 << (exponentBits - 1)) - 1;
    for (int bits = 0; bits < infinity; ++bits) {
      const int exponent = bits >> fractionBits, fraction = bits & ((1 << fractionBits) - 1);
      finite.push_back(exponent == 0
                           ? std::ldexp(fraction, 1 - bias - fractionBits)
                           : std::ldexp(fraction + (1 << fractionBits),
                                        exponent - bias - fractionBits));
    }
  }
  static FloatFormat f16() { return {5, 10}; }
  static FloatFormat bf16() { return {8, 7}; }

  bool isNaN(uint16_t bits) const { return (bits & 0x7fff) > infinity; }

  /// The value of bits; exact.
  float decode(uint16_t bits) const {
    const int magnitude = bits & 0x7fff;
    double value = magnitude < infinity ? finite[size_t(magnitude)]
                   : magnitude == infinity
                       ? std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::quiet_NaN();
    return float(std::copysign(value, bits & 0x8000 ? -1.0 : 1.0));
  }

  /// To nearest, ties to even; half a step beyond the largest is infinite.
  uint16_t encode(float x) const {
    const int sign = std::signbit(x) ? 0x8000 : 0;
    const double magnitude = std::fabs(double(x));
    if (std::isnan(x))
      return uint16_t(sign | (infinity + 1));
    const double largest = finite.back(), before = finite[finite.size() - 2];
    if (magnitude >= largest + (largest - before) / 2)
      return uint16_t(sign | infinity);
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
  int infinity;
  std::vector<double> finite; ///< values of the bits without sign
};

} // namespace sinkstate::test

#endif // SINKSTATE_TEST_UNIT_NUMERIC_FLOATFORMAT_H
