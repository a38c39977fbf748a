//===- SSKKernelOps.cpp - kernels and calls -------------------------------===//
#include "dialect/ssk/SSKDialect.h"
#include "dialect/ssk/SSKWarps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sinkstate::ssk;

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     ArrayRef<Type> argumentTypes,
                     ArrayRef<StringRef> argumentNames, StringRef role,
                     int64_t programsPerBlock) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.function_type =
      TypeAttr::get(builder.getFunctionType(argumentTypes, {}));
  properties.programs_per_block = builder.getI64IntegerAttr(programsPerBlock);
  if (!role.empty())
    properties.role = builder.getStringAttr(role);
  SmallVector<Attribute> attributes;
  for (StringRef argument : argumentNames)
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        SSKDialect::kNameAttr, builder.getStringAttr(argument))));
  properties.arg_attrs = builder.getArrayAttr(attributes);
  Region *body = state.addRegion();
  Block &entry = body->emplaceBlock();
  for (Type type : argumentTypes)
    entry.addArgument(type, state.location);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult KernelOp::verify() {
  if (!getResultTypes().empty())
    return emitOpError("has results, expected none: write to a global instead");
  if (getProgramsPerBlock() < 1 || getProgramsPerBlock() > 32)
    return emitOpError("programs_per_block is ")
           << getProgramsPerBlock() << ", expected 1 to 32";
  if (IntegerAttr blocks = getMinBlocksAttr();
      blocks && (blocks.getInt() < 1 || blocks.getInt() > 32))
    return emitOpError("min_blocks is ")
           << blocks.getInt() << ", expected 1 to 32";
  llvm::StringSet<> names;
  for (auto [index, type] : llvm::enumerate(getArgumentTypes())) {
    if (!isa<GlobalType>(type) && !type.isSignlessInteger(32) &&
        !type.isSignlessInteger(64) && !type.isF32())
      return emitOpError("argument ")
             << index << " has type " << type
             << ", expected !ssk.global, i32, i64 or f32";
    StringRef name = getArgumentName(index);
    if (name.empty())
      return emitOpError("argument ")
             << index
             << " has no 'ssk.name', expected one: the runtime binds "
                "arguments by name";
    if (!names.insert(name).second)
      return emitOpError("argument ")
             << index << " has the name '" << name
             << "' of an earlier argument, expected different names";
    if (mayAlias(index) && !isa<GlobalType>(type))
      return emitOpError("argument ")
             << index << " has 'ssk.may_alias' and type " << type
             << ", expected !ssk.global";
    auto global = dyn_cast<GlobalType>(type);
    if (getArgAttr(index, SSKDialect::kDivisibleByAttr) &&
        !isa<IntegerType>(global ? global.getElementType() : type))
      return emitOpError("argument ")
             << index << " has 'ssk.divisible_by' and type " << type
             << ", expected i32 or i64, or a global of them";
  }
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (getBody().empty() || getBody().front().empty() ||
      !isa<ReturnOp>(getBody().front().back()))
    return emitOpError("does not end with 'ssk.return', expected it as the "
                       "last operation of the body");
  return verifyWarps(*this);
}

//===----------------------------------------------------------------------===//
// PartsOp
//===----------------------------------------------------------------------===//

void PartsOp::build(
    OpBuilder &builder, OperationState &state, int64_t count, TypeRange sums,
    function_ref<SmallVector<Value>(Value)> body,
    function_ref<SmallVector<Value>(ValueRange)> last) {
  state.getOrAddProperties<Properties>().count =
      builder.getI64IntegerAttr(count);
  state.addTypes(sums);
  OpBuilder::InsertionGuard guard(builder);
  Block &each = state.addRegion()->emplaceBlock();
  each.addArgument(builder.getIndexType(), state.location);
  builder.setInsertionPointToStart(&each);
  YieldPartOp::create(builder, state.location, body(each.getArgument(0)));
  Block &end = state.addRegion()->emplaceBlock();
  for (Type type : sums)
    end.addArgument(type, state.location);
  builder.setInsertionPointToStart(&end);
  YieldPartOp::create(builder, state.location, last(end.getArguments()));
}

OperandRange PartsOp::getYielded() {
  return cast<YieldPartOp>(getBody().front().getTerminator()).getValues();
}

OperandRange PartsOp::getLastYielded() {
  return cast<YieldPartOp>(getLast().front().getTerminator()).getValues();
}

void PartsOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &scratch : getThroughMutable()) {
    effects.emplace_back(MemoryEffects::Read::get(), &scratch);
    effects.emplace_back(MemoryEffects::Write::get(), &scratch);
  }
}

/// The first operation at or inside `op` that writes memory (a global alone, if
/// asked); a sync does not.
static Operation *findWrite(Operation *op, bool globalAlone) {
  Operation *found = nullptr;
  op->walk([&](Operation *inner) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(inner);
    if (!effects || isa<SyncOp>(inner))
      return WalkResult::advance();
    SmallVector<MemoryEffects::EffectInstance> all;
    effects.getEffects(all);
    for (const MemoryEffects::EffectInstance &effect : all)
      if (isa<MemoryEffects::Write>(effect.getEffect()) &&
          (!globalAlone ||
           (effect.getValue() && isa<GlobalType>(effect.getValue().getType()))))
        found = inner;
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

/// Sums are f32 tiles over the lanes, scratch is one vector for each.
static LogicalResult verifySums(PartsOp op) {
  if (op.getSums().empty())
    return op.emitOpError("has no results, expected what the parts add up to");
  for (Value sum : op.getSums()) {
    auto type = cast<TileType>(sum.getType());
    if (type.getRank() != 1 || !type.hasLanes() ||
        !type.getElementType().isF32())
      return op.emitOpError("adds up ")
             << type << ", expected tiles of f32 of one dimension, over the lanes";
  }
  if (op.getThrough().empty())
    return success();
  if (op.getThrough().size() != op.getSums().size())
    return op.emitOpError("has ")
           << op.getThrough().size() << " pieces of scratch for "
           << op.getSums().size() << " sums, expected one for each";
  for (auto [scratch, sum] : llvm::zip(op.getThrough(), op.getSums())) {
    auto type = cast<SharedType>(scratch.getType());
    if (type.getShape() != cast<TileType>(sum.getType()).getShape() ||
        !type.getElementType().isF32())
      return op.emitOpError("passes ")
             << sum.getType() << " through " << type
             << ", expected scratch of the same elements";
  }
  return success();
}

/// Only what follows the operation in its block may come after it, and nothing
/// (`globalAlone`: no global) may be written before it. `why` not. In place of
/// it a program may write only with `globalAlone`.
static LogicalResult verifyPlace(Operation *op, bool globalAlone, StringRef why) {
  for (Operation *at = op; !isa<KernelOp>(at); at = at->getParentOp()) {
    Operation *parent = at->getParentOp();
    if (!parent || !isa<KernelOp, scf::IfOp>(parent))
      return op->emitOpError("is in ")
             << (parent ? parent->getName().getStringRef() : "nothing")
             << ", expected a kernel and branches alone around it";
    if (at != op && (at->getNextNode() != at->getBlock()->getTerminator() ||
                     at->getNumResults() != 0))
      return op->emitOpError("is in a branch that something follows, or that has "
                             "results, expected one that ends its block");
    SmallVector<Operation *> beside;
    for (Operation &before : llvm::make_range(at->getBlock()->begin(),
                                              Block::iterator(at)))
      beside.push_back(&before);
    if (!globalAlone && isa<scf::IfOp>(parent))
      for (Region &side : parent->getRegions())
        if (&side != at->getParentRegion())
          side.walk([&](Operation *other) { beside.push_back(other); });
    for (Operation *other : beside)
      if (Operation *write = findWrite(other, globalAlone)) {
        InFlightDiagnostic error =
            op->emitOpError("comes after a write to ")
            << (globalAlone ? "a global" : "memory")
            << ", expected none before it" << (globalAlone ? ": " : " or in its place: ")
            << why;
        error.attachNote(write->getLoc()) << "it is written here";
        return error;
      }
  }
  return success();
}

static LogicalResult verifyPlace(PartsOp op) {
  if (failed(verifyPlace(op, /*globalAlone=*/true,
                         "all warps of a program would make it")))
    return failure();
  WalkResult others = op->getParentOfType<KernelOp>().walk([&](PartsOp other) {
    return other == op ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (others.wasInterrupted())
    return op.emitOpError("is not the only one of its kernel, expected one");
  return success();
}

LogicalResult PartsOp::verify() {
  if (getCount() < 2 || getCount() > 8)
    return emitOpError("has ") << getCount() << " parts, expected 2 to 8";
  if (failed(verifySums(*this)) || failed(verifyPlace(*this)))
    return failure();
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (kernel.getProgramsPerBlock() != 1)
    return emitOpError("is in a kernel of ")
           << kernel.getProgramsPerBlock()
           << " programs a block, expected 1: the warps of a block are those of "
              "a program";
  return success();
}

/// A body ends with what it yields and writes nothing.
static LogicalResult verifyBody(PartsOp op, Block &block) {
  if (block.empty() || !isa<YieldPartOp>(block.back()))
    return op.emitOpError("has a body that does not end with 'ssk.yield_part', "
                          "expected it");
  if (block.back().getOperandTypes() != op.getSums().getTypes())
    return op.emitOpError("yields types other than those of its results, expected "
                          "the same");
  for (Operation &inner : block)
    if (Operation *write = findWrite(&inner, /*globalAlone=*/false)) {
      InFlightDiagnostic error = op.emitOpError(
          "writes memory in its body, expected none: parts may run at the same "
          "time");
      error.attachNote(write->getLoc()) << "it is written here";
      return error;
    }
  return success();
}

LogicalResult PartsOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex())
    return emitOpError("has a body of ")
           << block.getNumArguments()
           << " arguments, expected one: the part's number, index";
  if (getLast().front().getArgumentTypes() != getSums().getTypes())
    return emitOpError("passes the last body types other than those of its "
                       "results, expected the same");
  if (failed(verifyBody(*this, block)))
    return failure();
  return verifyBody(*this, getLast().front());
}

//===----------------------------------------------------------------------===//
// CallOp
//===----------------------------------------------------------------------===//

void CallOp::build(OpBuilder &builder, OperationState &state, StringRef callee,
                   ValueRange args, ArrayRef<int64_t> reads,
                   ArrayRef<int64_t> writes) {
  build(builder, state, builder.getI32Type(), callee, args, reads, writes);
}

int64_t CallOp::getRoutineIndex() {
  for (auto [index, routine] : llvm::enumerate(getRoutines()))
    if (routine.name == getCallee())
      return index;
  return -1;
}

/// The spelling of the type behind a letter of routines.def.
static StringRef describeLetter(char letter) {
  switch (letter) {
  case 'i':
    return "i32";
  case 'f':
    return "f32";
  case 'd':
    return "f64";
  case 'F':
    return "scratch of f32";
  case 'D':
    return "scratch of f64";
  case 'I':
    return "scratch of i32";
  }
  return "an unknown type";
}

static bool matchesLetter(char letter, Type type) {
  auto shared = dyn_cast<SharedType>(type);
  Type element = shared ? shared.getElementType() : type;
  if (bool(shared) != bool(letter >= 'A' && letter <= 'Z'))
    return false;
  switch (letter | 0x20) {
  case 'i':
    return element.isInteger(32);
  case 'f':
    return element.isF32();
  case 'd':
    return element.isF64();
  }
  return false;
}

static LogicalResult verifyOperandList(CallOp op, ArrayRef<int64_t> list,
                                       StringRef what) {
  for (int64_t operand : list)
    if (operand < 0 || operand >= int64_t(op.getArgs().size()) ||
        !isa<SharedType>(op.getArgs()[operand].getType()))
      return op.emitOpError()
             << what << " names operand " << operand
             << ", expected the number of an operand that is scratch";
  return success();
}

LogicalResult CallOp::verify() {
  int64_t index = getRoutineIndex();
  if (index < 0)
    return emitOpError("calls '")
           << getCallee()
           << "', expected a routine listed in sinkstate/routines.def";
  StringRef signature = getRoutines()[index].signature;
  if (signature.size() != getArgs().size())
    return emitOpError("passes ")
           << getArgs().size() << " arguments to '" << getCallee()
           << "', expected " << signature.size();
  for (auto [number, letter] : llvm::enumerate(signature)) {
    Type type = getArgs()[number].getType();
    if (!matchesLetter(letter, type))
      return emitOpError("argument ")
             << number << " of '" << getCallee() << "' is " << type
             << ", expected " << describeLetter(letter);
  }
  if (failed(verifyOperandList(*this, getReads(), "reads")) ||
      failed(verifyOperandList(*this, getWrites(), "writes")))
    return failure();
  for (auto [number, arg] : llvm::enumerate(getArgs()))
    if (isa<SharedType>(arg.getType()) &&
        !llvm::is_contained(getReads(), int64_t(number)) &&
        !llvm::is_contained(getWrites(), int64_t(number)))
      return emitOpError("argument ")
             << number
             << " is scratch and in neither reads nor writes, "
                "expected its effect to be declared";
  return success();
}

void CallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (int64_t operand : getReads())
    effects.emplace_back(MemoryEffects::Read::get(),
                         &getArgsMutable()[operand]);
  for (int64_t operand : getWrites())
    effects.emplace_back(MemoryEffects::Write::get(),
                         &getArgsMutable()[operand]);
}

//===----------------------------------------------------------------------===//
// Independent loops
//===----------------------------------------------------------------------===//

/// Whether the counter of a loop takes 0, step, 2 step and so on to a constant.
static bool hasConstantBounds(scf::ForOp loop) {
  APInt upper, step;
  return matchPattern(loop.getLowerBound(), m_Zero()) &&
         matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) &&
         matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.sgt(0) &&
         upper.sgt(0) && upper.srem(step).isZero();
}

LogicalResult SSKDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (attribute.getName() != kIndependentAttr)
    return success();
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop || !isa<UnitAttr>(attribute.getValue()))
    return op->emitOpError("has 'ssk.independent' = ")
           << attribute.getValue()
           << ", expected it on an scf.for, without a value";
  if (loop.getNumResults() != 0)
    return op->emitOpError("is independent and carries values from one iteration "
                           "to the next, expected none");
  if (!hasConstantBounds(loop))
    return op->emitOpError("is independent, expected a constant number of "
                           "iterations from 0 on");
  if (op->getNextNode() != op->getBlock()->getTerminator())
    return op->emitOpError("is independent and not the last of its block, "
                           "expected nothing behind it");
  return verifyPlace(op, /*globalAlone=*/false,
                     "all warps that run iterations would make it");
}
