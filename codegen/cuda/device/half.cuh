// 16-bit floating point numbers as storage: kernels widen them before they compute.
// NVRTC has these types in headers of the toolkit only.
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

} // namespace ss
