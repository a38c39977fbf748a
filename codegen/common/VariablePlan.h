//===- VariablePlan.h - Variables and names of a printed kernel -*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_COMMON_VARIABLEPLAN_H
#define SINKSTATE_CODEGEN_COMMON_VARIABLEPLAN_H

#include "codegen/common/ExpressionForming.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace sinkstate::codegen {

class Interference;

/// What a printed variable is called and whether it changes.
struct Variable {
  std::string name;
  /// True if it is assigned after its declaration.
  bool isMutable = false;
};

/// The frozen table of variables. Values that can live in one variable share it:
/// a loop's initial value, its iteration argument, what the body yields and the
/// result; an accumulator and the sum. All of it is decided before printing, so
/// that the printer holds no state and prints the same bytes every time.
class VariablePlan {
public:
  /// `reserved`: names that no variable may have.
  VariablePlan(ssk::KernelOp kernel, const ExpressionForming &forming,
               const llvm::StringSet<> &reserved);

  /// The variable of a value that is neither inlined nor an element in the body
  /// of a map.
  const Variable &lookup(mlir::Value value) const;

  /// True if the operation of `value` declares its variable; otherwise the
  /// variable exists already and is assigned. A loop declares what its iteration
  /// arguments need, a branch what its results need.
  bool isDeclaredBy(mlir::Value value) const { return declaring.contains(value); }

  /// True if both values live in the same variable.
  bool isShared(mlir::Value a, mlir::Value b) const {
    return getLeader(a) == getLeader(b);
  }

private:
  /// The names visible at a place: those of the enclosing scopes and its own.
  class Scope;

  void shareIn(mlir::Block &block, const Interference &interference);
  void shareLoop(mlir::scf::ForOp loop, const Interference &interference);
  bool tryShare(mlir::Value a, mlir::Value b, const Interference &interference);
  mlir::Value getLeader(mlir::Value value) const;
  void share(mlir::Value a, mlir::Value b);
  void nameBlock(mlir::Block &block, Scope &scope, unsigned depth);
  void nameOperation(mlir::Operation &op, Scope &scope, unsigned depth);
  void declare(mlir::Value value, llvm::StringRef fallback, Scope &scope);
  llvm::StringRef findHint(mlir::Value value) const;
  llvm::ArrayRef<mlir::Value> getMembers(const mlir::Value &leader) const;

  const ExpressionForming &forming;
  Scope *memberScope = nullptr; // while names are given
  /// Where a shared value is not its own leader.
  llvm::DenseMap<mlir::Value, mlir::Value> parents;
  /// The values of each leader that has more than itself, in the order found.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> members;
  llvm::DenseMap<mlir::Value, Variable> variables; // by leader
  llvm::DenseSet<mlir::Value> declaring;
};

} // namespace sinkstate::codegen

#endif // SINKSTATE_CODEGEN_COMMON_VARIABLEPLAN_H
