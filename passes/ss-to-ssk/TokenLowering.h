//===- TokenLowering.h - a token's inputs in a kernel -----------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_TOKENLOWERING_H
#define SINKSTATE_PASSES_SSTOSSK_TOKENLOWERING_H

#include "StateTables.h"
#include "dialect/ss/SS.h"
#include "llvm/ADT/DenseMap.h"

namespace sinkstate {

/// Lowers what a decode function computes from one token alone, for one head:
/// normalised queries and keys (tiles [dk]), the value (tile [dv]), the
/// log-decay (scalar or tile [dk]) and the weight of the new pair (scalar).
class TokenLowering {
public:
  TokenLowering(StateTables &tables, mlir::Value batchRow)
      : t(tables), k(tables.k), batchRow(batchRow) {}

  /// Names a value of the function by the kernel argument that holds it.
  void bind(mlir::Value value, llvm::StringRef argument) {
    arguments[value] = argument;
  }
  /// True when the operation was one of a token's inputs.
  bool lower(mlir::Operation *op);

  /// The lowered form of a value made by `lower`, or a bound argument loaded.
  mlir::Value vector(mlir::Value value);
  mlir::Value scalar(mlir::Value value);
  bool isVector(mlir::Value value) const;
  /// Offset of this row's and head's element of a batched argument.
  mlir::Value offset(llvm::StringRef argument, mlir::Value head,
                     int64_t length);

private:
  mlir::Value loadVector(llvm::StringRef argument);
  mlir::Value normalize(ss::NormalizeOp op);
  /// `x`, times a power of two where its squares are too large or too small for
  /// float32, and the length that it is divided by, times the same.
  KernelBuilder::Values measure(mlir::Value x, ss::NormAttr norm,
                                llvm::StringRef called);
  mlir::Value logDecay(ss::LogDecayOp op);
  /// x + bias of a gate, at this head (scalar) or at its channels (tile).
  mlir::Value biasedGate(mlir::Value gate, mlir::Value bias, bool channels);

  StateTables &t;
  KernelBuilder &k;
  mlir::Value batchRow;
  llvm::DenseMap<mlir::Value, llvm::StringRef> arguments;
  llvm::DenseMap<mlir::Value, mlir::Value> lowered;
};

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_TOKENLOWERING_H
