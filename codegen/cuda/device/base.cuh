// The few names that every printed kernel relies on. No toolkit header is needed:
// NVRTC defines float4, threadIdx, the shuffles and the mathematical functions.
#pragma once

#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif

namespace ss {

/// Every lane of the warp that runs a program.
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarpSize = 32;

/// The place of this thread in its warp.
__device__ __forceinline__ int lane_id() { return threadIdx.x & 31; }

/// Where an array lies in shared memory. A routine that is called, and not repeated in a kernel at
/// every use, takes its arrays so: a reference would not say of which memory, and reads by it would
/// be those of any.
#if defined(__CUDA_ARCH__)
using SharedAddress = unsigned;
template <typename T> __device__ __forceinline__ SharedAddress shared_address(const T &array) {
  return unsigned(__cvta_generic_to_shared(&array));
}
template <typename T> __device__ __forceinline__ T &at_shared(SharedAddress address) {
  return *static_cast<T *>(__cvta_shared_to_generic(address));
}
#else
using SharedAddress = const void *;
template <typename T> SharedAddress shared_address(const T &array) { return &array; }
template <typename T> T &at_shared(SharedAddress address) {
  return *static_cast<T *>(const_cast<void *>(address));
}
#endif

/// The ends of a type's range.
template <typename T> struct Limits;
template <> struct Limits<float> {
  static __device__ __forceinline__ float lowest() { return -INFINITY; }
  static __device__ __forceinline__ float highest() { return INFINITY; }
};
template <> struct Limits<double> {
  static __device__ __forceinline__ double lowest() { return -INFINITY; }
  static __device__ __forceinline__ double highest() { return INFINITY; }
};
template <> struct Limits<int32_t> {
  static __device__ __forceinline__ int32_t lowest() { return -2147483647 - 1; }
  static __device__ __forceinline__ int32_t highest() { return 2147483647; }
};
template <> struct Limits<int64_t> {
  static __device__ __forceinline__ int64_t lowest() { return -9223372036854775807ll - 1; }
  static __device__ __forceinline__ int64_t highest() { return 9223372036854775807ll; }
};

/// The larger number; NaN if either is (fmaxf would return the other one).
template <typename T> __device__ __forceinline__ T maximum(T a, T b) {
  return a != a || b != b ? a + b : (a > b || (a == b && !signbit(a))) ? a : b;
}

/// The smaller number; NaN if either is.
template <typename T> __device__ __forceinline__ T minimum(T a, T b) {
  return a != a || b != b ? a + b : (a < b || (a == b && signbit(a))) ? a : b;
}

/// a < b or a > b, so false for NaN.
template <typename T> __device__ __forceinline__ bool less_or_greater(T a, T b) {
  return a < b || a > b;
}

/// Whether one of them is NaN.
template <typename T> __device__ __forceinline__ bool unordered(T a, T b) {
  return a != a || b != b;
}

/// a / b, rounded up or down.
template <typename T> __device__ __forceinline__ T ceil_div(T a, T b) {
  const T quotient = a / b;
  return quotient + (a % b != 0 && (a < 0) == (b < 0));
}
template <typename T> __device__ __forceinline__ T floor_div(T a, T b) {
  const T quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

} // namespace ss
