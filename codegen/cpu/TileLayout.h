//===- TileLayout.h - how a tile is spread over SIMD vectors ------*- C++
//-*-===//
#ifndef SINKSTATE_CODEGEN_CPU_TILELAYOUT_H
#define SINKSTATE_CODEGEN_CPU_TILELAYOUT_H

#include "dialect/ssk/SSKDialect.h"

namespace sinkstate::cpu {

/// A run of lane elements that one SIMD vector (or a scalar, width 1) holds.
struct Chunk {
  int64_t offset; ///< of its first element along the lane dimension
  int64_t width;  ///< a power of two
};

/// Splits `extent` into chunks of `vectorWidth` and power-of-two tails:
/// 80 = 5 x 16, 100 = 6 x 16 + 4, 3 = 2 + 1. LLVM never sees another width.
llvm::SmallVector<Chunk> splitIntoChunks(int64_t extent, int64_t vectorWidth);

/// What values of an element type are on a CPU: the type itself, or an integer
/// for floats of 8 bits.
mlir::Type getCpuElementType(mlir::Type element);

/// The lane dimension of a tile is cut into chunks, every other element index
/// is a row. A tile without lanes has one row of one element per element. The
/// parts of a tile are ordered by row, then by chunk.
struct TileLayout {
  TileLayout(ssk::TileType type, int64_t vectorWidth);

  ssk::TileType type;
  int64_t rows;
  llvm::SmallVector<Chunk> chunks;

  size_t size() const { return rows * chunks.size(); }
  size_t partIndex(int64_t row, size_t chunk) const {
    return row * chunks.size() + chunk;
  }
  /// The type of part `chunk`: a vector, or the element type for width 1. 8-bit
  /// floats, which LLVM has not, are integers here.
  mlir::Type getPartType(size_t chunk) const;
  /// The coordinates in the tile of lane element `lane` of a row.
  llvm::SmallVector<int64_t, 2> getCoordinates(int64_t row, int64_t lane) const;
};

} // namespace sinkstate::cpu

#endif // SINKSTATE_CODEGEN_CPU_TILELAYOUT_H
