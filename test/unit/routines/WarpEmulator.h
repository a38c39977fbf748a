// Runs device code of one warp on the CPU: 32 fibers that meet at every
// __syncwarp and shuffle. Include before the device headers.
//
// Between two meetings the lanes run one after the other, in an order that the
// caller picks: code whose result depends on it has a race. Lanes that meet at
// different places in the source are reported. The warps of a block meet at every
// __syncthreads; between two of these one runs after the other, in that order too.
#ifndef SINKSTATE_TEST_ROUTINES_WARPEMULATOR_H
#define SINKSTATE_TEST_ROUTINES_WARPEMULATOR_H

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <math.h>
#include <source_location>

namespace sinkstate::test {

enum class LaneOrder { Ascending, Descending, Shuffled };

/// Calls body once per lane. Returns false (and prints where) if the lanes did
/// not meet at the same places.
bool runWarp(LaneOrder order, const std::function<void()> &body);

/// The same for the threads of a block of several warps.
bool runBlock(LaneOrder order, int warps, const std::function<void()> &body);

/// The lane that is running.
int currentLane();

/// The place of the warp in its block, 0 at first: threadIdx.x counts through the block.
void setWarpInBlock(int warp);
int warpInBlock();

/// Publishes size bytes, waits for the other lanes, reads those of lane `from`.
void meet(std::source_location where, const void *mine = nullptr,
          void *theirs = nullptr, size_t size = 0, int from = 0);

/// Waits for all warps of the block that have not ended.
void meetBlock(std::source_location where);

struct ThreadIndex {
  struct Lane {
    operator int() const { return 32 * warpInBlock() + currentLane(); }
  } x;
};

} // namespace sinkstate::test

// NOLINTBEGIN: the names of CUDA
#define __device__
#define __forceinline__ inline
#define __noinline__

inline sinkstate::test::ThreadIndex threadIdx;

inline void
__syncwarp(std::source_location where = std::source_location::current()) {
  sinkstate::test::meet(where);
}

inline void
__syncthreads(std::source_location where = std::source_location::current()) {
  sinkstate::test::meetBlock(where);
}

template <typename T>
T __shfl_sync(unsigned, T value, int lane,
              std::source_location where = std::source_location::current()) {
  T result;
  sinkstate::test::meet(where, &value, &result, sizeof(T), lane & 31);
  return result;
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int offset,
                  std::source_location where =
                      std::source_location::current()) {
  T result;
  sinkstate::test::meet(where, &value, &result, sizeof(T),
                        sinkstate::test::currentLane() ^ offset);
  return result;
}

inline bool __all_sync(unsigned, bool value,
                       std::source_location where = std::source_location::current()) {
  bool all = true;
  for (int lane = 0; lane < 32; ++lane)
    all = __shfl_sync(0u, value, lane, where) && all;
  return all;
}
inline unsigned __ballot_sync(unsigned, bool value,
                              std::source_location where = std::source_location::current()) {
  unsigned votes = 0;
  for (int lane = 0; lane < 32; ++lane)
    votes |= unsigned(__shfl_sync(0u, value, lane, where)) << lane;
  return votes;
}
inline bool __any_sync(unsigned, bool value,
                       std::source_location where = std::source_location::current()) {
  return __ballot_sync(0u, value, where) != 0u;
}

struct alignas(16) double2 {
  double x, y;
};
inline double2 make_double2(double x, double y) { return {x, y}; }

struct alignas(8) float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

inline double __longlong_as_double(long long bits) {
  return std::bit_cast<double>(bits);
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
// NOLINTEND

#endif
