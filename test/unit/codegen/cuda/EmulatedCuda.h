// What printed CUDA C++ takes from NVRTC, for a host compiler: put before the kernel's
// text. A warp is emulated by WarpEmulator.h; blocks and warps run one after the other.
#ifndef SINKSTATE_TEST_UNIT_CODEGEN_CUDA_EMULATEDCUDA_H
#define SINKSTATE_TEST_UNIT_CODEGEN_CUDA_EMULATEDCUDA_H

#include "WarpEmulator.h"

#include <algorithm>

// NOLINTBEGIN: the names of CUDA
#define __global__
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(bytes) alignas(bytes)

struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) longlong2 { long long x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

namespace sinkstate::test {
struct BlockIndex {
  int64_t x;
};
} // namespace sinkstate::test
inline sinkstate::test::BlockIndex blockIdx, gridDim;

template <typename A, typename B> auto min(A a, B b) { return a < b ? a : b; }
template <typename A, typename B> auto max(A a, B b) { return a > b ? a : b; }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
using std::fma;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
// NOLINTEND

#endif
