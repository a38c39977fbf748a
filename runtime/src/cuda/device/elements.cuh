// 16-bit elements for kernels that are not generated: the device's twin of
// numeric/BinaryFloat.h, with the same bits. It has no header to include there;
// the tests run it on the host and compare.
#pragma once

#ifdef __CUDACC_RTC__
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define SS_ON_BOTH_SIDES __device__ __forceinline__
#else
#include <bit>
#include <cmath>
#include <cstdint>
#define SS_ON_BOTH_SIDES inline
#endif

namespace ss {

SS_ON_BOTH_SIDES uint32_t bits_of(float value) {
#ifdef __CUDACC_RTC__
  return __float_as_uint(value);
#else
  return std::bit_cast<uint32_t>(value);
#endif
}

SS_ON_BOTH_SIDES float float_of(uint32_t bits) {
#ifdef __CUDACC_RTC__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

/// To the nearest integer, ties to even.
SS_ON_BOTH_SIDES float to_integer(float value) {
#ifdef __CUDACC_RTC__
  return rintf(value);
#else
  return std::nearbyint(value);
#endif
}

SS_ON_BOTH_SIDES float from_bf16(uint16_t bits) { return float_of(uint32_t(bits) << 16); }

SS_ON_BOTH_SIDES uint16_t to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000) // NaN
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

SS_ON_BOTH_SIDES float from_f16(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31)
    return float_of(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0)
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = float(fraction) * 0x1p-24f; // subnormal, exact
  return sign ? -small : small;
}

SS_ON_BOTH_SIDES uint16_t to_f16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000) // NaN
    return uint16_t(sign | 0x7e00 | (size & 0x7fffff) >> 13);
  const float magnitude = float_of(size);
  if (magnitude >= 65520.0f) // rounds to infinity
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x1p-14f) // subnormal: a multiple of 2^-24
    return uint16_t(sign | uint32_t(to_integer(magnitude * 0x1p24f)));
  const uint32_t rounded = size + 0xfff + (bits >> 13 & 1) - (112u << 23);
  return uint16_t(sign | rounded >> 13);
}

} // namespace ss
