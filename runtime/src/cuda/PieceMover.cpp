//===- PieceMover.cpp - Many pieces of memory in one transfer -------------===//

#include "cuda/PieceMover.h"

#include <algorithm>
#include <cstring>

namespace sinkstate::runtime::cuda {
namespace {

constexpr int64_t kAlignment = 16;
int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void *asPointer(CUdeviceptr address) {
  return reinterpret_cast<void *>(address);
}

} // namespace

/// Makes room for so many bytes, on the device and in `host`.
CUdeviceptr PieceMover::stage(int64_t bytes) {
  if (int64_t(memory.bytes()) < bytes) {
    memory = DeviceMemory(); // first, so that both need not fit
    memory = DeviceMemory(context, size_t(bytes));
  }
  host.resize(size_t(bytes));
  return memory.address();
}

/// The first `bytes` of `host` to the staging area.
void PieceMover::copyIn(int64_t bytes, CUstream stream) {
  SS_CUDA(context->driver(), cuMemcpyHtoDAsync(memory.address(), host.data(),
                                               size_t(bytes), stream));
}

void PieceMover::moveChunk(const Chunk &chunk, bool down, CUstream stream) {
  const IgnoredCaptures ignored(*context);
  const size_t count = chunk.pieces.size();
  const int64_t list = aligned(int64_t(count * sizeof(ss::Piece)));
  const CUdeviceptr begin = stage(list + chunk.bytes);
  std::byte *bytes = host.data() + list;
  std::vector<ss::Piece> pieces;
  for (size_t i = 0; i < count; ++i) {
    const HostPiece &piece = chunk.pieces[i];
    const CUdeviceptr staged = begin + CUdeviceptr(list + chunk.offsets[i]);
    pieces.push_back({asPointer(down ? piece.device : staged),
                      asPointer(down ? staged : piece.device), piece.bytes,
                      0});
    if (!down)
      std::memcpy(bytes + chunk.offsets[i], piece.host, size_t(piece.bytes));
  }
  std::memcpy(host.data(), pieces.data(), count * sizeof(ss::Piece));
  copyIn(down ? list : list + chunk.bytes, stream);
  kernels.copyPieces(reinterpret_cast<const ss::Piece *>(begin),
                     int64_t(count), stream);
  if (down)
    SS_CUDA(context->driver(),
            cuMemcpyDtoHAsync(bytes, begin + CUdeviceptr(list),
                              size_t(chunk.bytes), stream));
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
  for (size_t i = 0; down && i < count; ++i)
    std::memcpy(chunk.pieces[i].host, bytes + chunk.offsets[i],
                size_t(chunk.pieces[i].bytes));
}

/// Chunk by chunk; pieces are cut where one is full.
void PieceMover::move(std::span<const HostPiece> pieces, bool down,
                      CUstream stream) {
  constexpr int64_t kMostList = kStagingBytes / 8;
  constexpr int64_t kMostBytes = kStagingBytes - kMostList;
  constexpr int64_t kMostPieces = kMostList / int64_t(sizeof(ss::Piece));
  Chunk chunk;
  for (HostPiece rest : pieces)
    while (rest.bytes > 0) {
      if (chunk.bytes == kMostBytes ||
          int64_t(chunk.pieces.size()) == kMostPieces) {
        moveChunk(chunk, down, stream);
        chunk = Chunk();
      }
      HostPiece piece = rest;
      piece.bytes = std::min(rest.bytes, kMostBytes - chunk.bytes);
      chunk.pieces.push_back(piece);
      chunk.offsets.push_back(chunk.bytes);
      chunk.bytes += aligned(piece.bytes);
      rest.device += CUdeviceptr(piece.bytes);
      rest.host += piece.bytes;
      rest.bytes -= piece.bytes;
    }
  if (!chunk.pieces.empty())
    moveChunk(chunk, down, stream);
}

void PieceMover::copy(std::span<const Copy> pieces, CUstream stream) {
  const IgnoredCaptures ignored(*context);
  constexpr size_t kMost = size_t(kStagingBytes) / sizeof(ss::Piece);
  for (size_t first = 0; first < pieces.size(); first += kMost) {
    const size_t count = std::min(kMost, pieces.size() - first);
    std::vector<ss::Piece> list;
    for (const Copy &piece : pieces.subspan(first, count))
      if (piece.bytes > 0)
        list.push_back({asPointer(piece.from), asPointer(piece.to),
                        piece.bytes, int64_t(piece.storage)});
    if (list.empty())
      continue;
    const auto bytes = int64_t(list.size() * sizeof(ss::Piece));
    const CUdeviceptr begin = stage(bytes);
    std::memcpy(host.data(), list.data(), size_t(bytes));
    copyIn(bytes, stream);
    kernels.copyPieces(reinterpret_cast<const ss::Piece *>(begin),
                       int64_t(list.size()), stream);
    SS_CUDA(context->driver(), cuStreamSynchronize(stream));
  }
}

} // namespace sinkstate::runtime::cuda
