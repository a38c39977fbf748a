//===- KernelLowering.cpp - functions, control flow and scalars -----------===//
#include "codegen/cpu/KernelLowering.h"

#include "codegen/cpu/MathExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cpu;

KernelLowering::KernelLowering(ModuleOp module, int64_t vectorWidth)
    : module(module), vectorWidth(vectorWidth), builder(module.getContext()),
      loc(module.getLoc()) {}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Type KernelLowering::convertArgumentType(Type type) {
  if (isa<ssk::GlobalType>(type))
    return LLVM::LLVMPointerType::get(type.getContext());
  return type;
}

/// No call of a C library function may appear behind our back: the code is
/// linked with nothing.
static void forbidLibraryCalls(LLVM::LLVMFuncOp function) {
  Builder builder(function.getContext());
  function.setPassthroughAttr(builder.getStrArrayAttr({"no-builtins"}));
  function.setNoUnwind(true);
}

LLVM::LLVMFuncOp KernelLowering::createProgramFunction(ssk::KernelOp kernel) {
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes())
    types.push_back(convertArgumentType(type));
  types.push_back(LLVM::LLVMPointerType::get(builder.getContext()));
  types.append(2, builder.getI64Type());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(builder.getContext()), types);
  builder.setInsertionPointToEnd(module.getBody());
  auto function = LLVM::LLVMFuncOp::create(
      builder, kernel.getLoc(), (kernel.getName() + ".program").str(), type,
      LLVM::Linkage::Internal);
  forbidLibraryCalls(function);
  // Its own function, so that the promise of no aliasing stays exact.
  function.setNoInline(true);
  entry = function.addEntryBlock(builder);
  for (auto [index, argument] :
       llvm::enumerate(kernel.getBody().front().getArguments())) {
    values.map(argument, entry->getArgument(index));
    if (isa<ssk::GlobalType>(argument.getType()) && !kernel.mayAlias(index))
      function.setArgAttr(index, "llvm.noalias", builder.getUnitAttr());
  }
  routines = entry->getArgument(types.size() - 3);
  program = entry->getArgument(types.size() - 2);
  nextProgram = entry->getArgument(types.size() - 1);
  return function;
}

void KernelLowering::createEntryFunction(ssk::KernelOp kernel,
                                         LLVM::LLVMFuncOp programFunction) {
  loc = kernel.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                  {pointer, pointer, i64, i64});
  builder.setInsertionPointToEnd(module.getBody());
  auto function =
      LLVM::LLVMFuncOp::create(builder, loc, kernel.getName(), type);
  forbidLibraryCalls(function);
  Block *block = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  SmallVector<Value> arguments;
  for (auto [index, argument] : llvm::enumerate(kernel.getArgumentTypes())) {
    Value slot = createGep(pointer, block->getArgument(0), int64_t(index));
    Value address = LLVM::LoadOp::create(builder, loc, pointer, slot);
    arguments.push_back(LLVM::LoadOp::create(
        builder, loc, convertArgumentType(argument), address));
  }
  arguments.push_back(block->getArgument(1));
  arguments.append(2, Value());
  Value one = createI64(1);
  Value last = arith::SubIOp::create(builder, loc, block->getArgument(3), one);
  scf::ForOp::create(builder, loc, block->getArgument(2), block->getArgument(3),
                     one, ValueRange(),
                     [&](OpBuilder &b, Location l, Value number, ValueRange) {
                       Value next = arith::AddIOp::create(b, l, number, one);
                       *std::prev(arguments.end(), 2) = number;
                       arguments.back() =
                           arith::MinSIOp::create(b, l, next, last);
                       LLVM::CallOp::create(b, l, programFunction, arguments);
                       scf::YieldOp::create(b, l);
                     });
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

LogicalResult KernelLowering::lower(ssk::KernelOp kernel) {
  values.clear();
  tiles.clear();
  matmulFactor = matmulPanel = Value();
  loc = kernel.getLoc();
  LLVM::LLVMFuncOp function = createProgramFunction(kernel);
  builder.setInsertionPointToEnd(entry);
  if (failed(lowerBlock(kernel.getBody().front())))
    return failure();
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  createEntryFunction(kernel, function);
  return success();
}

void KernelLowering::finish() {
  if (zeroBytes == 0)
    return;
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), zeroBytes);
  builder.setInsertionPointToStart(module.getBody());
  auto zeros = LLVM::GlobalOp::create(
      builder, module.getLoc(), type, /*isConstant=*/true,
      LLVM::Linkage::Internal, "ssk.zeros", Attribute(), /*alignment=*/64);
  zeros.setDsoLocal(true);
  Block *block = builder.createBlock(&zeros.getInitializerRegion());
  builder.setInsertionPointToEnd(block);
  Value zero = LLVM::ZeroOp::create(builder, module.getLoc(), type);
  LLVM::ReturnOp::create(builder, module.getLoc(), zero);
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    loc = op.getLoc();
    if (failed(lowerOperation(op)))
      return failure();
  }
  return success();
}

LogicalResult KernelLowering::lowerOperation(Operation &op) {
  if (isa<ssk::SSKDialect>(op.getDialect()))
    return lowerKernelOperation(op);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return lowerFor(loop);
  if (auto condition = dyn_cast<scf::IfOp>(op))
    return lowerIf(condition);
  return lowerScalar(op);
}

LogicalResult KernelLowering::lowerKernelOperation(Operation &op) {
  using llvm::TypeSwitch;
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](ssk::ProgramIdOp op) {
        Value index = arith::IndexCastOp::create(
            builder, loc, builder.getIndexType(), program);
        values.map(op.getResult(), index);
        return success();
      })
      .Case([&](ssk::NextProgramOp op) {
        Value index = arith::IndexCastOp::create(
            builder, loc, builder.getIndexType(), nextProgram);
        values.map(op.getResult(), index);
        return success();
      })
      .Case([&](ssk::PrefetchOp op) { return lowerPrefetch(op), success(); })
      .Case([&](ssk::AllocOp op) { return lowerAlloc(op), success(); })
      .Case([&](ssk::FillOp op) { return lowerFill(op), success(); })
      .Case([&](ssk::ReadOp op) { return lowerRead(op), success(); })
      .Case([&](ssk::WriteOp op) { return lowerWrite(op), success(); })
      .Case([&](ssk::LoadOp op) { return lowerLoad(op), success(); })
      .Case([&](ssk::StoreOp op) { return lowerStore(op), success(); })
      .Case([&](ssk::SplatOp op) { return lowerSplat(op), success(); })
      .Case([&](ssk::IotaOp op) { return lowerIota(op), success(); })
      .Case([&](ssk::MapOp op) { return lowerMap(op); })
      .Case([&](ssk::ReduceOp op) { return lowerReduce(op), success(); })
      .Case([&](ssk::DotOp op) { return lowerDot(op), success(); })
      .Case(
          [&](ssk::AccumulateOp op) { return lowerAccumulate(op), success(); })
      .Case([&](ssk::MatmulOp op) { return lowerMatmul(op), success(); })
      .Case([&](ssk::TopKOp op) { return lowerTopK(op), success(); })
      .Case([&](ssk::CallOp op) { return lowerCall(op), success(); })
      .Case([&](ssk::PartsOp op) { return lowerParts(op); })
      .Case([&](ssk::CopyOp op) { return lowerCopy(op), success(); })
      // One program runs on one thread: its memory is always visible to it.
      .Case<ssk::SyncOp, ssk::WaitCopiesOp>([](auto) { return success(); })
      .Default([](Operation *op) {
        return op->emitError("'")
               << op->getName() << "' has no lowering for the CPU";
      });
}

LogicalResult KernelLowering::lowerScalar(Operation &op) {
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(values.lookupOrNull(operand));
  StringRef dialect = op.getName().getDialectNamespace();
  if (llvm::is_contained(operands, Value()) || op.getNumResults() != 1 ||
      (dialect != "arith" && dialect != "math"))
    return op.emitError("'")
           << op.getName()
           << "' in a kernel, expected ssk, scf.for, scf.if or arith and math "
              "on scalars";
  Value result;
  Type type = getCpuElementType(op.getResult(0).getType());
  if (failed(createElementwise(builder, op, operands, type, convertsHalf(),
                               result)))
    return failure();
  values.map(op.getResult(0), result);
  return success();
}

void KernelLowering::appendTypes(TypeRange types, SmallVectorImpl<Type> &out) {
  for (Type type : types) {
    auto tile = dyn_cast<ssk::TileType>(type);
    if (!tile) {
      out.push_back(getCpuElementType(type));
      continue;
    }
    TileLayout layout(tile, vectorWidth);
    for (int64_t row = 0; row < layout.rows; ++row)
      for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk)
        out.push_back(layout.getPartType(chunk));
  }
}

void KernelLowering::appendValues(ValueRange range,
                                  SmallVectorImpl<Value> &out) {
  for (Value value : range) {
    auto parts = tiles.find(value);
    if (parts != tiles.end())
      llvm::append_range(out, parts->second);
    else
      out.push_back(values.lookup(value));
  }
}

void KernelLowering::bindValues(ValueRange range, ValueRange replacements) {
  for (Value value : range) {
    auto tile = dyn_cast<ssk::TileType>(value.getType());
    if (!tile) {
      values.map(value, replacements.front());
      replacements = replacements.drop_front();
      continue;
    }
    size_t count = TileLayout(tile, vectorWidth).size();
    tiles[value] = Parts(replacements.take_front(count));
    replacements = replacements.drop_front(count);
  }
}

LogicalResult KernelLowering::lowerFor(scf::ForOp op) {
  SmallVector<Value> inits;
  appendValues(op.getInitArgs(), inits);
  auto loop = scf::ForOp::create(
      builder, loc, values.lookup(op.getLowerBound()),
      values.lookup(op.getUpperBound()), values.lookup(op.getStep()), inits);
  loop.setUnsignedCmp(op.getUnsignedCmp());
  values.map(op.getInductionVar(), loop.getInductionVar());
  bindValues(op.getRegionIterArgs(), loop.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard guard(builder);
    Block *body = loop.getBody();
    if (!body->empty() && isa<scf::YieldOp>(body->back()))
      body->back().erase();
    builder.setInsertionPointToEnd(body);
    if (failed(lowerBlock(*op.getBody())))
      return failure();
    SmallVector<Value> yielded;
    appendValues(op.getBody()->getTerminator()->getOperands(), yielded);
    scf::YieldOp::create(builder, op.getLoc(), yielded);
  }
  bindValues(op.getResults(), loop.getResults());
  return success();
}

/// One part after the other. The loop carries the sums of all parts but the latest,
/// and the latest part; minus zero and the first part are the first part.
LogicalResult KernelLowering::lowerParts(ssk::PartsOp op) {
  SmallVector<Type> types;
  appendTypes(op.getSums().getTypes(), types);
  Value zero = arith::ConstantOp::create(builder, loc,
                                         builder.getF32FloatAttr(-0.0f));
  SmallVector<Value> zeros;
  for (Type type : types)
    zeros.push_back(createBroadcast(type, zero));
  const size_t count = zeros.size();
  auto addTo = [&](ValueRange sums, ValueRange parts) {
    SmallVector<Value> added;
    for (auto [sum, part] : llvm::zip_equal(sums, parts))
      added.push_back(arith::AddFOp::create(builder, op.getLoc(), sum, part));
    return added;
  };
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  SmallVector<Value> inits(zeros);
  inits.append(zeros);
  auto loop = scf::ForOp::create(builder, loc, index(0), index(op.getCount()),
                                 index(1), inits);
  values.map(op.getPart(), loop.getInductionVar());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(loop.getBody());
    ValueRange carried(loop.getRegionIterArgs());
    SmallVector<Value> next =
        addTo(carried.take_front(count), carried.drop_front(count));
    if (failed(lowerBlock(op.getBody().front())))
      return failure();
    appendValues(op.getYielded(), next);
    scf::YieldOp::create(builder, op.getLoc(), next);
  }
  ValueRange results(loop.getResults());
  bindValues(op.getLast().getArguments(), results.drop_front(count));
  if (failed(lowerBlock(op.getLast().front())))
    return failure();
  SmallVector<Value> last;
  appendValues(op.getLastYielded(), last);
  bindValues(op.getSums(), addTo(results.take_front(count), last));
  return success();
}

LogicalResult KernelLowering::lowerIfRegion(Region &from, Region &to) {
  OpBuilder::InsertionGuard guard(builder);
  if (to.empty())
    to.emplaceBlock();
  Block &block = to.front();
  if (!block.empty())
    block.back().erase();
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> yielded;
  if (!from.empty()) {
    if (failed(lowerBlock(from.front())))
      return failure();
    appendValues(from.front().getTerminator()->getOperands(), yielded);
  }
  scf::YieldOp::create(builder, loc, yielded);
  return success();
}

LogicalResult KernelLowering::lowerIf(scf::IfOp op) {
  SmallVector<Type> types;
  appendTypes(op.getResultTypes(), types);
  bool hasElse = !op.getElseRegion().empty();
  OperationState state(loc, scf::IfOp::getOperationName());
  state.addOperands(values.lookup(op.getCondition()));
  state.addTypes(types);
  state.addRegion();
  state.addRegion();
  auto created = cast<scf::IfOp>(builder.create(state));
  if (failed(lowerIfRegion(op.getThenRegion(), created.getThenRegion())))
    return failure();
  if (hasElse &&
      failed(lowerIfRegion(op.getElseRegion(), created.getElseRegion())))
    return failure();
  bindValues(op.getResults(), created.getResults());
  return success();
}

void KernelLowering::lowerCall(ssk::CallOp op) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  // struct ss_routine_table: two u32, then one pointer per routine.
  Value slot =
      createGep(builder.getI8Type(), routines, 8 + 8 * op.getRoutineIndex());
  SmallVector<Value> operands = {
      LLVM::LoadOp::create(builder, loc, pointer, slot)};
  SmallVector<Type> types;
  for (Value argument : op.getArgs()) {
    operands.push_back(values.lookup(argument));
    types.push_back(operands.back().getType());
  }
  auto type = LLVM::LLVMFunctionType::get(builder.getI32Type(), types);
  auto call = LLVM::CallOp::create(builder, loc, type, operands);
  values.map(op.getStatus(), call.getResult());
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Value KernelLowering::createI64(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, builder.getI64Type(),
                                      value);
}

Value KernelLowering::createI32(int32_t value) {
  return arith::ConstantIntOp::create(builder, loc, builder.getI32Type(),
                                      value);
}

Value KernelLowering::createToI64(Value index) {
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
}

Value KernelLowering::createAdd(Value lhs, Value rhs) {
  return arith::AddIOp::create(builder, loc, lhs, rhs);
}

Value KernelLowering::createMul(Value lhs, int64_t factor) {
  if (factor == 1)
    return lhs;
  return arith::MulIOp::create(builder, loc, lhs, createI64(factor));
}

Value KernelLowering::createGep(Type type, Value pointer, Value index) {
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), type, pointer,
                             ArrayRef<LLVM::GEPArg>{index});
}

Value KernelLowering::createGep(Type type, Value pointer, int64_t index) {
  if (index == 0)
    return pointer;
  if (index == int32_t(index))
    return LLVM::GEPOp::create(builder, loc, pointer.getType(), type, pointer,
                               ArrayRef<LLVM::GEPArg>{int32_t(index)});
  return createGep(type, pointer, createI64(index));
}

/// Vectors are only as aligned as their elements.
static unsigned getElementBytes(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (!element.isIntOrFloat())
    return 8;
  return std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

Value KernelLowering::createLoad(Type type, Value pointer) {
  return LLVM::LoadOp::create(builder, loc, type, pointer,
                              getElementBytes(type));
}

void KernelLowering::createStore(Value value, Value pointer) {
  LLVM::StoreOp::create(builder, loc, value, pointer,
                        getElementBytes(value.getType()));
}

Value KernelLowering::createBroadcast(Type type, Value scalar) {
  if (!isa<VectorType>(type))
    return scalar;
  return vector::BroadcastOp::create(builder, loc, type, scalar);
}

Value KernelLowering::createFma(Value a, Value b, Value c) {
  return LLVM::FMulAddOp::create(builder, loc, a, b, c);
}

void KernelLowering::createLoop(int64_t end, int64_t step,
                                function_ref<void(Value)> body) {
  if (end <= 0)
    return;
  if (end <= step)
    return body(createI64(0));
  auto loop = scf::ForOp::create(builder, loc, createI64(0), createI64(end),
                                 createI64(step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value KernelLowering::createScratch(Type elementType, int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(entry);
  return LLVM::AllocaOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
      elementType, createI64(count), /*alignment=*/64);
}
