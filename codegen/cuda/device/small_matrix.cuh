// What the routines on one small matrix share: exact scaling, checks and searches by one warp.
// Relies on no other header, so that the routines can be tried alone.
#pragma once

namespace ss {
namespace small_matrix {

constexpr int kLanes = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

// Status bits, as in runtime/include/sinkstate/routines.h.
constexpr int kNotFinite = 1;
constexpr int kIllConditioned = 2;
constexpr int kNotConverged = 4;

__device__ __forceinline__ int lane() { return threadIdx.x & 31; }

__device__ __forceinline__ double infinity() {
  return __longlong_as_double(0x7ff0000000000000ll);
}

/// The sum over the lanes, by an xor butterfly: the same bits in every lane.
__device__ __forceinline__ double sum_lanes(double x) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    x += __shfl_xor_sync(kWholeWarp, x, offset);
  return x;
}

/// The largest number of the lanes; none may be NaN.
template <typename T> __device__ __forceinline__ T max_lanes(T x) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    const T other = __shfl_xor_sync(kWholeWarp, x, offset);
    x = other > x ? other : x;
  }
  return x;
}

/// 2^e for -1022 <= e <= 1023.
__device__ __forceinline__ double power_of_two(int e) {
  return __longlong_as_double((long long)(e + 1023) << 52);
}

/// e with x = f 2^e, f in [0.5, 1), of a positive number that is not a denormal.
__device__ __forceinline__ int binary_exponent(double x) {
  return int((__double_as_longlong(x) >> 52) & 0x7ff) - 1022;
}

/// x 2^e in two factors, since the exponents of doubles span more than one can hold.
__device__ __forceinline__ double scale_by(double x, int e) {
  const int half = e / 2;
  return x * power_of_two(half) * power_of_two(e - half);
}

/// 1 / sqrt(x) to rounding, for x in the range of floats: a float estimate, two Newton steps.
__device__ __forceinline__ double inverse_sqrt(double x) {
  double y = double(rsqrtf(float(x)));
  y = y * fma(-0.5 * x * y, y, 1.5);
  return y * fma(-0.5 * x * y, y, 1.5);
}

/// 1 / x to rounding, for a normal number.
__device__ __forceinline__ double reciprocal(double x) {
#ifdef __CUDA_ARCH__
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  y = fma(fma(-x, y, 1.0), y, y);
  return fma(fma(-x, y, 1.0), y, y);
#else
  return 1.0 / x;
#endif
}

/// 1 / sqrt(x) to rounding, for a normal number.
__device__ __forceinline__ double reciprocal_sqrt(double x) {
#ifdef __CUDA_ARCH__
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  y = fma(fma(-x * y, y, 1.0), 0.5 * y, y);
  return fma(fma(-x * y, y, 1.0), 0.5 * y, y);
#else
  return 1.0 / sqrt(x);
#endif
}

/// Sign, exponent and the upper bits of the mantissa.
__device__ __forceinline__ int high_word(double x) {
  return int(__double_as_longlong(x) >> 32);
}

__device__ __forceinline__ unsigned max_of_lanes(unsigned x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kWholeWarp, x);
#else
  return max_lanes(x);
#endif
}

__device__ __forceinline__ bool all_lanes(bool x) { return __all_sync(kWholeWarp, x); }
__device__ __forceinline__ bool any_lane(bool x) { return __any_sync(kWholeWarp, x); }

/// The largest magnitude in rows x columns numbers at pitch LD; infinity if one is not finite.
template <int LD>
__device__ __forceinline__ double largest_magnitude(const double *x, int rows, int columns) {
  double largest = 0.0;
  for (int at = lane(); at < rows * columns; at += kLanes) {
    const double a = fabs(x[at / columns * LD + at % columns]);
    largest = a - a != 0.0 ? infinity() : a > largest ? a : largest;
    if (a - a != 0.0)
      break;
  }
  return max_lanes(largest);
}

template <int LD> __device__ __forceinline__ void set_zero(double *x, int rows, int columns) {
  for (int at = lane(); at < rows * columns; at += kLanes)
    x[at / columns * LD + at % columns] = 0.0;
}

/// What the lane of row i holds for it, where a lane holds rows lane, lane + 32, ... Count values
/// each; the same in every lane.
template <int Count, typename T>
__device__ __forceinline__ T value_of_row(const T (&values)[Count], int i) {
  static_assert(Count <= 2, "a lane holds at most two rows");
  const T value = Count == 2 && i >= kLanes ? values[Count - 1] : values[0];
  return __shfl_sync(kWholeWarp, value, i % kLanes);
}

/// The largest value of the warp and its index, ties by lower index; the same in every lane.
__device__ __forceinline__ void argmax_lanes(double &value, int &index) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    const double other = __shfl_xor_sync(kWholeWarp, value, offset);
    const int place = __shfl_xor_sync(kWholeWarp, index, offset);
    if (other > value || (other == value && place < index)) {
      value = other;
      index = place;
    }
  }
}

} // namespace small_matrix
} // namespace ss
