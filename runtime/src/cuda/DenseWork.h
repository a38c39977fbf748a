//===- DenseWork.h - Memory for matrices on their way -----------*- C++ -*-===//
#ifndef SINKSTATE_CUDA_DENSEWORK_H
#define SINKSTATE_CUDA_DENSEWORK_H

#include "cuda/Memory.h"

#include <algorithm>
#include <vector>

namespace sinkstate::runtime::cuda {

/// Arrays in one allocation, for as many matrices as fit a bound. It is taken
/// when it is first needed, grows to the bound, and stays.
class DenseWork {
public:
  static constexpr int64_t kMostBytes = int64_t(256) << 20;

  explicit DenseWork(std::shared_ptr<const Context> context)
      : context(std::move(context)) {}

  /// The next arrays are for `matrices` matrices, each of `bytesEach` in all
  /// of its arrays. Returns how many at a time, at least one.
  int64_t begin(int64_t matrices, int64_t bytesEach) {
    const int64_t most = bytesFor(matrices, bytesEach);
    if (int64_t(memory.bytes()) < most) {
      memory = DeviceMemory(); // first, so that both need not fit
      memory = DeviceMemory(context, size_t(most));
    }
    next = 0;
    return countOf(matrices, bytesEach);
  }
  /// What `begin` has to have for them.
  static int64_t bytesFor(int64_t matrices, int64_t bytesEach) {
    return countOf(matrices, bytesEach) * (bytesEach + kArrays * kAlignment);
  }
  int64_t bytes() const { return int64_t(memory.bytes()); }
  /// An array of so many elements.
  template <typename T> T *take(int64_t count) {
    T *array = memory.at<T>(next);
    next += (count * int64_t(sizeof(T)) + kAlignment - 1) / kAlignment *
            kAlignment;
    return array;
  }

private:
  static constexpr int64_t kAlignment = 256, kArrays = 10;
  static int64_t countOf(int64_t matrices, int64_t bytesEach) {
    return std::clamp(kMostBytes / (bytesEach + kArrays * kAlignment),
                      int64_t(1), std::max<int64_t>(matrices, 1));
  }
  std::shared_ptr<const Context> context;
  DeviceMemory memory;
  int64_t next = 0;
};

} // namespace sinkstate::runtime::cuda

#endif
