//===- MappedRange.h - Device memory that grows in place --------*- C++ -*-===//
//
// An address range that is reserved at once and backed by memory up to some
// point, which moves. Addresses stay what they are, so that graphs with them
// stay valid. On GPUs that cannot map memory all of it is there from the
// beginning.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_MAPPEDRANGE_H
#define SINKSTATE_CUDA_MAPPEDRANGE_H

#include "cuda/Memory.h"

#include <vector>

namespace sinkstate::runtime::cuda {

class MappedRange {
public:
  MappedRange() = default;
  /// Reserves addresses for `bytes` bytes. Throws SS_OUT_OF_MEMORY.
  MappedRange(std::shared_ptr<const Context> context, size_t bytes);
  MappedRange(MappedRange &&other) noexcept { *this = std::move(other); }
  MappedRange &operator=(MappedRange &&other) noexcept;
  ~MappedRange();

  CUdeviceptr address() const { return begin; }
  size_t reservedBytes() const { return reserved; }
  /// Bytes with memory behind them, from the beginning.
  size_t mappedBytes() const { return mapped; }
  /// Bytes that mapping `bytes` would add: whole units of the GPU.
  size_t additionFor(size_t bytes) const;

  /// Maps at least `bytes` from the beginning; false where the GPU has no more
  /// memory, and then nothing has changed.
  bool growTo(size_t bytes);
  /// Gives back what lies wholly behind `bytes`. Nothing on the GPU may use it
  /// any more.
  void shrinkTo(size_t bytes);
  /// The bytes that shrinkTo(bytes) would leave mapped.
  size_t mappedAfterShrinkTo(size_t bytes) const;

private:
  struct Piece {
    CUmemGenericAllocationHandle handle;
    size_t bytes;
  };
  bool mapPiece(size_t bytes);
  void unmapLast(const Release &release);
  size_t rounded(size_t bytes) const;

  std::shared_ptr<const Context> context;
  CUdeviceptr begin = 0;
  size_t reserved = 0, mapped = 0;
  size_t unit = 0; ///< 0: cannot be mapped in parts
  std::vector<Piece> pieces;
  DeviceMemory whole; ///< instead of pieces
};

} // namespace sinkstate::runtime::cuda

#endif
