//===- CudaComputeOps.cpp - Arithmetic on tiles and scratch ---------------===//

#include "codegen/cuda/CudaTypes.h"
#include "codegen/cuda/KernelPrinter.h"
#include "dialect/ssk/SSKWarps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::codegen;
using namespace sinkstate::cuda;

/// A function that fills a tile, or returns a scalar.
void KernelPrinter::printTileCall(Value result, StringRef function, StringRef arguments) {
  if (!isa<ssk::TileType>(result.getType()))
    return assignScalar(result, (function + "(" + arguments + ")").str());
  declareTile(result);
  out.line(function + "(" + getName(result) + ", " + arguments + ");");
}

static bool isZero(Value value) {
  return matchPattern(value, m_PosZeroFloat()) || matchPattern(value, m_Zero());
}

void KernelPrinter::print(ssk::SplatOp splat) {
  Value result = splat.getResult();
  if (isZero(splat.getValue()) && plan.isDeclaredBy(result))
    return declareTile(result, " = {}");
  printTileCall(result, "ss::splat", getText(splat.getValue()));
}

/// `ss::iota_lanes<128>(numbers)`, or `ss::iota(numbers)` where every lane has all.
void KernelPrinter::print(ssk::IotaOp iota) {
  ssk::TileType type = iota.getResult().getType();
  declareTile(iota.getResult());
  std::string lanes =
      type.hasLanes() ? "_lanes<" + std::to_string(type.getShape()[0]) + ">" : "";
  out.line("ss::iota" + lanes + "(" + getName(iota.getResult()) + ");");
}

/// Loop variables of the dimensions of a tile: r for rows, e for elements.
static SmallVector<StringRef> getLoopNames(ssk::TileType type) {
  if (type.getRank() == 1)
    return {"e"};
  return {"r", "e"};
}

/// Whether a map is the conversion of a narrow tile to f32 and nothing else.
static bool isWidening(ssk::MapOp map) {
  auto extend = map.getYielded().getDefiningOp<arith::ExtFOp>();
  return extend && map.getInputs().size() == 1 &&
         extend.getIn() == map.getBody().getArgument(0) &&
         extend.getType().isF32() && ssk::isNarrowFloat(extend.getIn().getType()) &&
         map.getInputDims(0).size() == size_t(map.getResult().getType().getRank());
}

void KernelPrinter::print(ssk::MapOp map) {
  Value result = map.getResult();
  // Narrow elements are converted several at a time.
  if (isWidening(map))
    return printTileCall(result, "ss::widen", getName(map.getInputs()[0]));
  auto type = cast<ssk::TileType>(result.getType());
  // One register needs no loop.
  SmallVector<int64_t> shape = getRegisterShape(type);
  SmallVector<StringRef> loops = getLoopNames(type);
  for (auto [loop, extent] : llvm::zip(loops, shape))
    if (extent == 1)
      loop = "0";
  for (auto [i, input] : llvm::enumerate(map.getInputs())) {
    std::string element = getName(input).str();
    for (int64_t dim : map.getInputDims(i))
      element += "[" + loops[dim].str() + "]";
    elements[map.getBody().getArgument(i)] = element;
  }
  declareTile(result);
  unsigned depth = 0;
  for (auto [loop, extent] : llvm::zip(loops, shape)) {
    if (extent == 1)
      continue;
    out.directive("#pragma unroll");
    out.line("for (int " + loop + " = 0; " + loop + " < " + Twine(extent) + "; ++" + loop + ")");
    out.indent();
    ++depth;
  }
  printMapBody(map, loops, depth);
  for (; depth > 0; --depth)
    out.outdent();
}

/// One assignment, or a block if parts of the expression have names.
void KernelPrinter::printMapBody(ssk::MapOp map, ArrayRef<StringRef> indices, unsigned depth) {
  std::string target = getName(map.getResult()).str();
  for (StringRef index : indices)
    target += "[" + index.str() + "]";
  auto assign = [&] { out.line(target + " = " + getText(map.getYielded()) + ";"); };
  Block &body = map.getBody().front();
  bool hasStatements = llvm::any_of(body.without_terminator(), [&](Operation &op) {
    return !forming.isInlined(&op);
  });
  if (!hasStatements)
    return assign();
  if (depth > 0)
    out.outdent();
  out.open("");
  for (Operation &op : body.without_terminator())
    if (!forming.isInlined(&op))
      printScalar(op.getResult(0));
  assign();
  out.close();
  if (depth > 0)
    out.indent();
}

static StringRef getReducer(ssk::ReduceKind kind) {
  switch (kind) {
  case ssk::ReduceKind::Add:
    return "ss::Add";
  case ssk::ReduceKind::Max:
    return "ss::Max";
  case ssk::ReduceKind::Min:
    return "ss::Min";
  }
  llvm_unreachable("all kinds are listed");
}

void KernelPrinter::print(ssk::ReduceOp reduce) {
  auto type = cast<ssk::TileType>(reduce.getInput().getType());
  int64_t axis = reduce.getAxis();
  std::string reducer = getReducer(reduce.getKind()).str();
  std::string function;
  if (axis == type.getLanes())
    function = (axis == 0 && type.getRank() == 2 ? "ss::reduce_lanes_of_columns<"
                                                 : "ss::reduce_lanes<") +
               reducer + ", " + std::to_string(type.getShape()[axis]) + ">";
  else if (type.getRank() == 1)
    function = "ss::reduce<" + reducer + ">";
  else
    function = (axis == 0 ? "ss::reduce_first<" : "ss::reduce_second<") + reducer + ">";
  printTileCall(reduce.getResult(), function, getName(reduce.getInput()));
}

void KernelPrinter::print(ssk::DotOp dot) {
  auto type = cast<ssk::TileType>(dot.getRhs().getType());
  printTileCall(dot.getResult(), "ss::dot<" + std::to_string(type.getShape()[0]) + ">",
                (getName(dot.getLhs()) + ", " + getName(dot.getRhs())).str());
}

void KernelPrinter::print(ssk::AccumulateOp accumulate) {
  Value result = accumulate.getResult();
  if (!plan.isShared(result, accumulate.getAcc())) {
    declareTile(result);
    out.line("ss::assign(" + getName(result) + ", " + getName(accumulate.getAcc()) + ");");
  }
  out.line("ss::accumulate(" + getName(result) + ", " + getName(accumulate.getCoef()) + ", " +
           getName(accumulate.getRows()) + ");");
}

/// `ss::matmul<false, true, 16, 16, 128>(gram, rows, rows)`: which factors are
/// transposed, the extents of the result, and how many products a sum has. By several
/// warps, or added to what is there: `ss::matmul_of_warps<4, false, true, true, ...>`,
/// with the number of warps before and whether to add behind.
void KernelPrinter::print(ssk::MatmulOp matmul) {
  auto flag = [](bool value) -> std::string { return value ? "true" : "false"; };
  ArrayRef<int64_t> output = matmul.getOutput().getType().getShape();
  int64_t products = matmul.getLhs().getType().getShape()[matmul.getTransposeA() ? 0 : 1];
  std::string parameters = flag(matmul.getTransposeA()) + ", " + flag(matmul.getTransposeB());
  std::string function = "ss::matmul<";
  if (info.warps > 1 || matmul.getAccumulate() || matmul.getLimit()) {
    function = "ss::matmul_of_warps<" + std::to_string(info.warps) + ", ";
    parameters += ", " + flag(matmul.getAccumulate());
  }
  for (int64_t extent : {output[0], output[1], products})
    parameters += ", " + std::to_string(extent);
  std::string limit = matmul.getLimit() ? ", " + getText(matmul.getLimit()) : "";
  out.line(function + parameters + ">(" + getText(matmul.getOutput()) + ", " +
           getText(matmul.getLhs()) + ", " + getText(matmul.getRhs()) + limit + ");");
}

void KernelPrinter::print(ssk::TopKOp top) {
  out.line("ss::top_k(" + getText(top.getIndices()) + ", " + getText(top.getValues()) + ", " +
           getText(top.getCount()) + ");");
}

/// `ss::core_svd(m, scratch.core, ...)`: matrices and vectors by reference.
void KernelPrinter::print(ssk::CallOp call) {
  StringRef callee = call.getCallee();
  callee.consume_front("ss_");
  std::string text = "ss::" + callee.str();
  if (ssk::isForWarps(call.getCallee()))
    text += "<" + std::to_string(info.warps) + ">";
  text += "(";
  llvm::ListSeparator comma;
  for (Value argument : call.getArgs())
    text += std::string(StringRef(comma)) + getText(argument);
  text += ")";
  if (call.getStatus().use_empty())
    return out.line(text + ";");
  assignScalar(call.getStatus(), text);
}
