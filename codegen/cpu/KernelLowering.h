//===- KernelLowering.h - one ssk kernel to vectors and pointers --*- C++
//-*-===//
//
// A structured walk over a kernel: tiles become lists of SIMD vectors, memory
// becomes pointers, scf keeps its structure. Private to codegen/cpu.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_CPU_KERNELLOWERING_H
#define SINKSTATE_CODEGEN_CPU_KERNELLOWERING_H

#include "codegen/cpu/TileLayout.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace sinkstate::cpu {

/// Lowers kernels of one module. Results go to the end of that module; the
/// kernels themselves are left for the caller to erase.
class KernelLowering {
public:
  KernelLowering(mlir::ModuleOp module, int64_t vectorWidth);

  /// Creates `NAME` and `NAME.program` for a kernel called NAME.
  mlir::LogicalResult lower(ssk::KernelOp kernel);
  /// Creates what the lowered kernels share; call it once, at the end.
  void finish();

private:
  using Parts = llvm::SmallVector<mlir::Value>;

  // Functions (KernelLowering.cpp).
  mlir::LLVM::LLVMFuncOp createProgramFunction(ssk::KernelOp kernel);
  void createEntryFunction(ssk::KernelOp kernel,
                           mlir::LLVM::LLVMFuncOp program);
  mlir::Type convertArgumentType(mlir::Type type);

  // The walk (KernelLowering.cpp).
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lowerOperation(mlir::Operation &op);
  mlir::LogicalResult lowerKernelOperation(mlir::Operation &op);
  mlir::LogicalResult lowerScalar(mlir::Operation &op);
  mlir::LogicalResult lowerFor(mlir::scf::ForOp op);
  mlir::LogicalResult lowerIf(mlir::scf::IfOp op);
  mlir::LogicalResult lowerIfRegion(mlir::Region &from, mlir::Region &to);
  void appendTypes(mlir::TypeRange types,
                   llvm::SmallVectorImpl<mlir::Type> &out);
  void appendValues(mlir::ValueRange values,
                    llvm::SmallVectorImpl<mlir::Value> &out);
  void bindValues(mlir::ValueRange values, mlir::ValueRange replacements);
  mlir::LogicalResult lowerParts(ssk::PartsOp op);
  void lowerCall(ssk::CallOp op);

  // Memory (LowerMemory.cpp).
  void lowerAlloc(ssk::AllocOp op);
  void lowerCopy(ssk::CopyOp op);
  void lowerFill(ssk::FillOp op);
  void lowerPrefetch(ssk::PrefetchOp op);
  void lowerRead(ssk::ReadOp op);
  void lowerWrite(ssk::WriteOp op);
  void lowerLoad(ssk::LoadOp op);
  void lowerStore(ssk::StoreOp op);

  /// Where the elements of a tile lie: element (i, j) at
  /// `base + i * rowStride + j`, in elements.
  struct Access {
    mlir::Value base;
    mlir::Type elementType;
    mlir::Value rowStride; ///< i64; null for a tile of one dimension
    mlir::Value limit;     ///< i64; null without a limit
  };
  Access createAccess(ssk::TileType tile, mlir::Value memory,
                      mlir::OperandRange indices, mlir::Value stride,
                      mlir::Value limit);
  mlir::Value createElementPointer(mlir::Value memory,
                                   mlir::OperandRange indices);
  /// The pointer to element (i, 0), or (i) for a tile of one dimension.
  mlir::Value createRowPointer(const Access &access, int64_t row);
  mlir::Value loadPart(const Access &access, const TileLayout &layout,
                       int64_t row, size_t chunk, mlir::Value rowPointer);
  mlir::Value loadColumn(const Access &access, const TileLayout &layout,
                         int64_t row, size_t chunk);
  void storePart(const Access &access, const TileLayout &layout, int64_t row,
                 size_t chunk, mlir::Value rowPointer, mlir::Value value);
  void storeColumn(const Access &access, const TileLayout &layout, int64_t row,
                   size_t chunk, mlir::Value value);
  mlir::Value createLimitMask(mlir::Value limit, const Chunk &chunk);
  mlir::Value createInLimit(mlir::Value limit, int64_t index);
  /// Reads of excluded rows go to zeros instead, which needs no branch.
  mlir::Value selectOrZeros(mlir::Value condition, mlir::Value pointer,
                            int64_t bytes);

  /// F16C is older than AVX2, whose vectors have eight elements.
  bool convertsHalf() const { return vectorWidth >= 8; }

  // Arithmetic on tiles (LowerCompute.cpp).
  void lowerSplat(ssk::SplatOp op);
  void lowerIota(ssk::IotaOp op);
  mlir::LogicalResult lowerMap(ssk::MapOp op);
  mlir::Value getMapInput(ssk::MapOp op, unsigned input,
                          const TileLayout &result, int64_t row, size_t chunk);
  mlir::LogicalResult lowerMapBody(ssk::MapOp op, mlir::Type partType,
                                   llvm::ArrayRef<mlir::Value> inputs,
                                   mlir::Value &result);
  void lowerReduce(ssk::ReduceOp op);
  Parts reduceRows(const TileLayout &layout, llvm::ArrayRef<mlir::Value> parts,
                   ssk::ReduceKind kind);
  Parts reduceLanes(const TileLayout &layout, llvm::ArrayRef<mlir::Value> parts,
                    ssk::ReduceKind kind);
  void lowerDot(ssk::DotOp op);
  void lowerAccumulate(ssk::AccumulateOp op);
  mlir::Value combine(ssk::ReduceKind kind, mlir::Value lhs, mlir::Value rhs);
  /// Adds (or ...) the upper half of a vector to the lower half.
  mlir::Value foldHalf(ssk::ReduceKind kind, mlir::Value vector);
  /// Reduces vectors of equal width, each to a scalar, several at a time.
  Parts foldVectors(ssk::ReduceKind kind, llvm::ArrayRef<mlir::Value> vectors);
  Parts foldGroup(ssk::ReduceKind kind, llvm::ArrayRef<mlir::Value> group);
  void bindTile(mlir::Value tile, Parts parts);

  // Scratch matrices (LowerMatmul.cpp, LowerTopK.cpp).
  void lowerMatmul(ssk::MatmulOp op);
  void lowerTopK(ssk::TopKOp op);

public:
  // Building blocks that the lowerings of matmul and top_k share with the rest.
  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }
  int64_t getVectorWidth() const { return vectorWidth; }
  mlir::Value createI64(int64_t value);
  mlir::Value createI32(int32_t value);
  mlir::Value createToI64(mlir::Value index);
  mlir::Value createAdd(mlir::Value lhs, mlir::Value rhs);
  mlir::Value createMul(mlir::Value lhs, int64_t factor);
  /// Pointer to element `index` (i64) of an array of `type` at `pointer`.
  mlir::Value createGep(mlir::Type type, mlir::Value pointer,
                        mlir::Value index);
  mlir::Value createGep(mlir::Type type, mlir::Value pointer, int64_t index);
  mlir::Value createLoad(mlir::Type type, mlir::Value pointer);
  void createStore(mlir::Value value, mlir::Value pointer);
  mlir::Value createBroadcast(mlir::Type type, mlir::Value scalar);
  mlir::Value createFma(mlir::Value a, mlir::Value b, mlir::Value c);
  /// `for (i64 i = 0; i < end; i += step)`; no loop where it runs once.
  void createLoop(int64_t end, int64_t step,
                  llvm::function_ref<void(mlir::Value)> body);
  /// A 64-byte aligned array of the program, allocated on entry.
  mlir::Value createScratch(mlir::Type elementType, int64_t count);
  mlir::Value getMemory(mlir::Value memory) { return values.lookup(memory); }
  mlir::Value getScalar(mlir::Value scalar) { return values.lookup(scalar); }

private:
  mlir::ModuleOp module;
  int64_t vectorWidth;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::Block *entry = nullptr; ///< of the program function
  mlir::Value routines;         ///< the routine table
  mlir::Value program;          ///< number of the program, i64
  mlir::Value nextProgram;      ///< of the one after it, or its own
  mlir::IRMapping values;       ///< scalars and memory
  llvm::DenseMap<mlir::Value, Parts> tiles;
  int64_t zeroBytes = 0; ///< size of the shared zeros that loads refer to

public:
  /// Scratch of matrix products, as large as the largest one needs.
  mlir::Value matmulFactor, matmulPanel;
};

} // namespace sinkstate::cpu

#endif // SINKSTATE_CODEGEN_CPU_KERNELLOWERING_H
