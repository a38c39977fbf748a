//===- VariablePlan.cpp - Names of variables ------------------------------===//

#include "codegen/common/VariablePlan.h"

#include "codegen/common/Interference.h"
#include "codegen/common/LocationText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::codegen;

/// The names visible at a place. Those that a scope adds vanish with it.
class VariablePlan::Scope {
public:
  explicit Scope(llvm::StringSet<> &taken) : taken(taken) {}
  Scope(Scope &outer) : taken(outer.taken) {}
  ~Scope() {
    for (const std::string &name : added)
      taken.erase(name);
  }

  /// `wanted`, with a number behind it if something else here has that name.
  std::string add(StringRef wanted) {
    // The printer makes temporaries of that form.
    std::string base = wanted.ends_with("_next") ? (wanted + "_").str() : wanted.str();
    std::string name = base;
    for (unsigned i = 1; !taken.insert(name).second; ++i)
      name = base + "_" + std::to_string(i);
    added.push_back(name);
    return name;
  }

private:
  llvm::StringSet<> &taken;
  SmallVector<std::string> added;
};

/// The name of a pointer or of scratch, or an empty string.
static StringRef getMemoryName(Value memory) {
  if (Operation *alloc = memory.getDefiningOp())
    return getNameHint(alloc->getLoc());
  auto argument = dyn_cast<BlockArgument>(memory);
  auto kernel = argument
                    ? dyn_cast<ssk::KernelOp>(argument.getOwner()->getParentOp())
                    : ssk::KernelOp();
  return kernel ? kernel.getArgumentName(argument.getArgNumber()) : StringRef();
}

/// A name for a value that has none: what it was made from, or by.
static std::string getFallbackName(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<ssk::LoadOp>([](ssk::LoadOp load) {
        StringRef name = getMemoryName(load.getMemory());
        return name.empty() ? std::string("tile") : (name + "_tile").str();
      })
      .Case<ssk::ReadOp>([](ssk::ReadOp read) {
        StringRef name = getMemoryName(read.getMemory());
        if (name.empty())
          return std::string("element");
        return name.size() > 2 && name.ends_with("s") && !name.ends_with("ss")
                   ? name.drop_back().str()
                   : (name + "_value").str();
      })
      .Case<ssk::DotOp>([](auto) { return "dots"; })
      .Case<ssk::ReduceOp>([](ssk::ReduceOp reduce) {
        return reduce.getKind() == ssk::ReduceKind::Add   ? "sum"
               : reduce.getKind() == ssk::ReduceKind::Max ? "largest"
                                                          : "smallest";
      })
      .Case<ssk::AccumulateOp>([](auto) { return "sum"; })
      .Case<ssk::SplatOp, ssk::MapOp>([](auto) { return "tile"; })
      .Case<ssk::PartsOp>([](auto) { return "sum"; })
      .Case<ssk::IotaOp>([](auto) { return "numbers"; })
      .Case<ssk::AllocOp>([](auto) { return "memory"; })
      .Case<ssk::CallOp>([](auto) { return "status"; })
      .Case<arith::ConstantOp>([](auto) { return "constant"; })
      .Case<arith::CmpIOp, arith::CmpFOp>([](auto) { return "is_true"; })
      .Default([](Operation *) { return "value"; });
}

ArrayRef<Value> VariablePlan::getMembers(const Value &leader) const {
  auto it = members.find(leader);
  return it == members.end() ? ArrayRef<Value>(leader) : ArrayRef<Value>(it->second);
}

/// The hint of any value of the variable; the name of a result that is passed to
/// its user counts too.
StringRef VariablePlan::findHint(Value value) const {
  Value leader = getLeader(value);
  for (Value member : getMembers(leader)) {
    StringRef hint = getNameHint(member.getLoc());
    Operation *op = member.getDefiningOp();
    // The location of an operation with several results names none of them.
    if (!hint.empty() &&
        !(isa_and_nonnull<scf::ForOp, ssk::PartsOp>(op) && op->getNumResults() > 1))
      return hint;
  }
  return {};
}

void VariablePlan::declare(Value value, StringRef fallback, Scope &scope) {
  Value leader = getLeader(value);
  if (variables.count(leader))
    return;
  StringRef hint = findHint(value);
  variables[leader] = {scope.add(hint.empty() ? fallback : hint),
                       getMembers(leader).size() > 1};
  declaring.insert(value);
}

static constexpr StringLiteral kLoopNames[] = {"i", "j", "k", "m", "n"};

void VariablePlan::nameOperation(Operation &op, Scope &scope, unsigned depth) {
  if (isa<ssk::ProgramIdOp>(op)) {
    variables[op.getResult(0)] = {"program", false};
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (BlockArgument argument : loop.getRegionIterArgs())
      declare(argument, "carried", scope);
    Scope inner(scope);
    StringRef hint = getNameHint(loop.getInductionVar().getLoc());
    StringRef fallback = kLoopNames[std::min<size_t>(depth, std::size(kLoopNames) - 1)];
    variables[loop.getInductionVar()] = {inner.add(hint.empty() ? fallback : hint), true};
    nameBlock(*loop.getBody(), inner, depth + 1);
    return;
  }
  // Scratch becomes members of a structure, which have their own names.
  if (isa<ssk::AllocOp>(op))
    return declare(op.getResult(0), getFallbackName(&op), *memberScope);
  for (Value result : op.getResults())
    if (!forming.isInlined(&op))
      declare(result, isa<scf::IfOp>(op) ? "chosen" : getFallbackName(&op), scope);
  auto parts = dyn_cast<ssk::PartsOp>(op);
  if (parts)
    for (BlockArgument own : parts.getLast().getArguments())
      declare(own, "own", scope);
  for (Region &region : op.getRegions())
    for (Block &block : region) {
      Scope inner(scope);
      if (parts && &region == &parts.getBody())
        variables[parts.getPart()] = {inner.add("part"), true};
      nameBlock(block, inner, depth);
    }
}

void VariablePlan::nameBlock(Block &block, Scope &scope, unsigned depth) {
  for (Operation &op : block)
    nameOperation(op, scope, depth);
}

VariablePlan::VariablePlan(ssk::KernelOp kernel, const ExpressionForming &forming,
                           const llvm::StringSet<> &reserved)
    : forming(forming) {
  Block &body = kernel.getBody().front();
  shareIn(body, Interference(forming));
  llvm::StringSet<> taken = reserved;
  Scope scope(taken);
  for (BlockArgument argument : body.getArguments()) {
    StringRef name = kernel.getArgumentName(argument.getArgNumber());
    variables[argument] = {scope.add(name.empty() ? "argument" : name), false};
  }
  llvm::StringSet<> takenMembers = reserved;
  Scope members(takenMembers);
  memberScope = &members;
  nameBlock(body, scope, 0);
  memberScope = nullptr;
}

const Variable &VariablePlan::lookup(Value value) const {
  return variables.find(getLeader(value))->second;
}
