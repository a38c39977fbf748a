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
    const int64_t each = bytesEach + kArrays * kAlignment;
    const int64_t count =
        std::clamp(kMostBytes / each, int64_t(1), std::max<int64_t>(matrices, 1));
    if (int64_t(memory.bytes()) < count * each) {
      memory = DeviceMemory(); // first, so that both need not fit
      memory = DeviceMemory(context, size_t(count * each));
    }
    next = 0;
    return count;
  }
  /// An array of so many elements.
  template <typename T> T *take(int64_t count) {
    T *array = memory.at<T>(next);
    next += (count * int64_t(sizeof(T)) + kAlignment - 1) / kAlignment *
            kAlignment;
    return array;
  }

private:
  static constexpr int64_t kAlignment = 256, kArrays = 10;
  std::shared_ptr<const Context> context;
  DeviceMemory memory;
  int64_t next = 0;
};

} // namespace sinkstate::runtime::cuda

#endif
