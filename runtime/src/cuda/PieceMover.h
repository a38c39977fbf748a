//===- PieceMover.h - Many pieces of memory in one transfer -----*- C++ -*-===//
//
// A slot is some hundred to thousand pieces of device memory. They are gathered
// in one staging area on the device and cross to the host at once, and back the
// same way; between places on the device they are copied directly.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_PIECEMOVER_H
#define SINKSTATE_CUDA_PIECEMOVER_H

#include "cuda/HandOverKernels.h"
#include "cuda/Memory.h"
#include "package/Storage.h"

#include <span>
#include <vector>

namespace sinkstate::runtime::cuda {

class PieceMover {
public:
  PieceMover(std::shared_ptr<const Context> context,
             const HandOverKernels &kernels)
      : context(std::move(context)), kernels(kernels) {}

  /// Device memory and its counterpart in host memory. Bytes are a multiple of
  /// 2, as is the address on the device.
  struct HostPiece {
    CUdeviceptr device;
    std::byte *host;
    int64_t bytes;
  };
  /// From device to device; f32 is rounded to `storage`, in whose bytes the
  /// size is counted.
  struct Copy {
    CUdeviceptr from, to;
    int64_t bytes;
    Storage storage = Storage::F32;
  };

  // All come after what `stream` has, and return when they are done. They
  // take device memory for the way where they have not enough: at most
  // kStagingBytes, and it stays.
  static constexpr int64_t kStagingBytes = int64_t(64) << 20;
  void download(std::span<const HostPiece> pieces, CUstream stream) {
    move(pieces, true, stream);
  }
  void upload(std::span<const HostPiece> pieces, CUstream stream) {
    move(pieces, false, stream);
  }
  void copy(std::span<const Copy> pieces, CUstream stream);

  /// On the device, now.
  int64_t bytes() const { return int64_t(memory.bytes()); }

private:
  /// Pieces that cross together: the list of them, then their bytes, alike in
  /// `host` and in the staging area.
  struct Chunk {
    std::vector<HostPiece> pieces;
    std::vector<int64_t> offsets; ///< among the bytes
    int64_t bytes = 0;
  };
  void move(std::span<const HostPiece> pieces, bool down, CUstream stream);
  void moveChunk(const Chunk &chunk, bool down, CUstream stream);
  /// Takes a list of pieces to the beginning of the staging area, and `bytes`
  /// of `host` with it.
  CUdeviceptr stage(int64_t bytes);
  void copyIn(int64_t bytes, CUstream stream);

  std::shared_ptr<const Context> context;
  const HandOverKernels &kernels;
  DeviceMemory memory;
  std::vector<std::byte> host;
};

} // namespace sinkstate::runtime::cuda

#endif
