// Floating point numbers of 16 and 8 bits as storage: kernels widen them before they
// compute. NVRTC has these types in headers of the toolkit only.
#pragma once
#include "ss/base.cuh"

namespace ss {

#ifdef __CUDACC_RTC__

/// IEEE half precision; rounds to nearest even.
struct half {
  unsigned short bits;
  half() = default;
  __device__ __forceinline__ explicit half(float x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  }
  __device__ __forceinline__ explicit operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};

/// The upper half of a float; rounds to nearest even.
struct bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  __device__ __forceinline__ explicit bfloat16(float x) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  }
  __device__ __forceinline__ explicit operator float() const {
    return __int_as_float(int(bits) << 16);
  }
};

#else // a host compiler, for tests

typedef _Float16 half;

struct bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  explicit bfloat16(float x) {
    const unsigned whole = __float_as_int(x);
    const unsigned rounded = whole + 0x7fff + (whole >> 16 & 1);
    bits = static_cast<unsigned short>((x == x ? rounded : 0x7fc00000) >> 16);
  }
  explicit operator float() const { return __int_as_float(int(bits) << 16); }
};

#endif

/// OCP e4m3: four bits of exponent, three of fraction, no infinity. Rounds to nearest even;
/// what is beyond 448, infinity too, saturates. NaN has all bits but the sign set.
struct float8 {
  unsigned char bits;
  float8() = default;
  __device__ __forceinline__ explicit float8(float x) {
#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 890
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    bits = static_cast<unsigned char>(pair & 0xff);
#else
    const int whole = __float_as_int(x);
    int magnitude = whole & 0x7fffffff;
    const bool is_nan = magnitude > 0x7f800000;
    magnitude = magnitude > 0x43e00000 ? 0x43e00000 : magnitude;
    // Exponents differ by 120; below 2^-6 steps are 2^-9, those of f32 above 2^14.
    const int normal = ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - (120 << 3);
    const int subnormal = __float_as_int(__int_as_float(magnitude) + 16384.0f) - 0x46800000;
    const int result = is_nan ? 0x7f : magnitude < 121 << 23 ? subnormal : normal;
    bits = static_cast<unsigned char>(result | (whole >> 24 & 0x80));
#endif
  }
  __device__ __forceinline__ explicit operator float() const {
#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 890
    unsigned pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(bits)));
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<unsigned short>(pair & 0xffff)));
    return x;
#elif defined(__CUDACC_RTC__)
    // As f16 the same bits are 2^-8 of the number.
    const unsigned short wide = static_cast<unsigned short>((bits & 0x7f) << 7 | (bits & 0x80) << 8);
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(wide));
    return (bits & 0x7f) == 0x7f ? __int_as_float(0x7fc00000) : x * 256.0f;
#else
    const int magnitude = bits & 0x7f;
    const float x = magnitude == 0x7f ? __int_as_float(0x7fc00000)
                    : magnitude < 8   ? magnitude * 0x1p-9f
                                      : __int_as_float((magnitude << 20) + (120 << 23));
    return bits & 0x80 ? -x : x;
#endif
  }
};

/// N numbers as f32. Exact.
template <int N, typename T> __device__ __forceinline__ void widen(float (&to)[N], const T (&from)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    to[i] = static_cast<float>(from[i]);
}

#if defined(__CUDACC_RTC__)

/// Those of one register, which need not be taken apart before.
__device__ __forceinline__ void widen_register(float *to, const half *from) {
  unsigned both;
  memcpy(&both, from, sizeof(both));
  asm("{\n\t.reg .b16 low, high;\n\t"
      "mov.b32 {low, high}, %2;\n\t"
      "cvt.f32.f16 %0, low;\n\tcvt.f32.f16 %1, high;\n\t}"
      : "=f"(to[0]), "=f"(to[1])
      : "r"(both));
}
__device__ __forceinline__ void widen_register(float *to, const bfloat16 *from) {
  unsigned both;
  memcpy(&both, from, sizeof(both));
  to[0] = __int_as_float(both << 16);
  to[1] = __int_as_float(both & 0xffff0000);
}
__device__ __forceinline__ void widen_register(float *to, const float8 *from) {
#if __CUDA_ARCH__ >= 890
  unsigned four;
  memcpy(&four, from, sizeof(four));
  asm("{\n\t.reg .b16 low, high;\n\t.reg .b32 first, second;\n\t"
      "mov.b32 {low, high}, %4;\n\t"
      "cvt.rn.f16x2.e4m3x2 first, low;\n\tcvt.rn.f16x2.e4m3x2 second, high;\n\t"
      "mov.b32 {low, high}, first;\n\t"
      "cvt.f32.f16 %0, low;\n\tcvt.f32.f16 %1, high;\n\t"
      "mov.b32 {low, high}, second;\n\t"
      "cvt.f32.f16 %2, low;\n\tcvt.f32.f16 %3, high;\n\t}"
      : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
      : "r"(four));
#else
#pragma unroll
  for (int i = 0; i < 4; ++i)
    to[i] = static_cast<float>(from[i]);
#endif
}

template <int N, typename T> __device__ __forceinline__ void widen_registers(float (&to)[N], const T (&from)[N]) {
  constexpr int parts = 4 / sizeof(T);
#pragma unroll
  for (int i = 0; i + parts <= N; i += parts)
    widen_register(to + i, from + i);
#pragma unroll
  for (int i = N / parts * parts; i < N; ++i)
    to[i] = static_cast<float>(from[i]);
}
template <int N> __device__ __forceinline__ void widen(float (&to)[N], const half (&from)[N]) {
  widen_registers(to, from);
}
template <int N> __device__ __forceinline__ void widen(float (&to)[N], const bfloat16 (&from)[N]) {
  widen_registers(to, from);
}
template <int N> __device__ __forceinline__ void widen(float (&to)[N], const float8 (&from)[N]) {
  widen_registers(to, from);
}

#endif

template <int R, int N, typename T>
__device__ __forceinline__ void widen(float (&to)[R][N], const T (&from)[R][N]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    widen(to[r], from[r]);
}

} // namespace ss
