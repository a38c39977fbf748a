//===- CudaStatement.cpp - Models of what the CUDA printer knows ----------===//
//
// One line for every operation, at the end. Whatever is not there cannot be printed.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaStatement.h"
#include "codegen/common/CppExpr.h"
#include "codegen/cuda/CudaTypes.h"
#include "codegen/cuda/KernelPrinter.h"
#include "passes/ssk/LaneLayout.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cuda;

#include "codegen/cuda/CudaStatement.cpp.inc"

namespace {

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Elements that one access of the tile may cover at most.
int64_t getMaxVector(ssk::TileType tile) {
  int64_t last = tile.getRank() - 1;
  int64_t extent = tile.getShape()[last];
  return tile.getLanes() == last ? ssk::getLaneWidth(extent) : extent;
}

LogicalResult checkVector(Operation *op, ssk::TileType tile, std::optional<int64_t> vector) {
  int64_t count = vector.value_or(1);
  int64_t max = getMaxVector(tile);
  if (max % count != 0)
    return op->emitOpError("has vector ")
           << count << ", expected a divisor of " << max
           << ", the consecutive elements that a lane holds of " << tile;
  if (count * getElementBytes(tile.getElementType()) > 16)
    return op->emitOpError("has vector ")
           << count << " of " << tile.getElementType() << ", expected at most 16 bytes";
  return success();
}

/// Values that cross control flow become variables: scalars or tiles.
LogicalResult checkCarriedTypes(Operation *op) {
  for (Type type : op->getResultTypes())
    if (!isa<ssk::TileType>(type) && codegen::getCppScalarType(type).empty())
      return op->emitOpError("has a result of type ")
             << type << ", expected a scalar or a tile";
  return success();
}

LogicalResult check(Operation *) { return success(); }

LogicalResult check(ssk::LoadOp load) {
  return checkVector(load, load.getResult().getType(), load.getVector());
}

LogicalResult check(ssk::StoreOp store) {
  return checkVector(store, store.getValue().getType(), store.getVector());
}

LogicalResult check(scf::ForOp loop) {
  llvm::APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive())
    return loop.emitOpError("has a step that is no positive constant, expected one");
  return checkCarriedTypes(loop);
}

LogicalResult check(scf::IfOp branch) { return checkCarriedTypes(branch); }

LogicalResult check(ssk::PartsOp parts) {
  if (!parts.getThrough().empty())
    return success();
  return parts.emitOpError("has no scratch to add up its parts through, expected "
                           "ssk-prepare to have run");
}

//===----------------------------------------------------------------------===//
// Headers
//===----------------------------------------------------------------------===//

enum class Header { None, Tile, Parts, Fill, Copy, Matmul, TopK, Routine };

std::string getHeader(Operation *op, Header header) {
  switch (header) {
  case Header::None:
    return {};
  case Header::Tile:
    return "ss/tile.cuh";
  case Header::Parts:
    return "ss/parts.cuh";
  case Header::Fill:
    return "ss/fill.cuh";
  case Header::Copy:
    return "ss/copy.cuh";
  case Header::Matmul:
    return "ss/matmul.cuh";
  case Header::TopK:
    return "ss/top_k.cuh";
  case Header::Routine: // that of the routine that is called, ss_NAME
    return "ss/" + cast<ssk::CallOp>(op).getCallee().drop_front(strlen("ss_")).str() + ".cuh";
  }
  llvm_unreachable("a header without a name");
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

/// Printed by `KernelPrinter::print(Op)`.
template <typename Op, Header header = Header::None>
struct Statement : CudaStatement::ExternalModel<Statement<Op, header>, Op> {
  LogicalResult checkCuda(Operation *op) const { return check(cast<Op>(op)); }
  void printCuda(Operation *op, KernelPrinter &printer) const { printer.print(cast<Op>(op)); }
  std::string getCudaHeader(Operation *op) const { return getHeader(op, header); }
};

/// Printed with what it belongs to.
template <typename Op>
struct WithOthers : CudaStatement::ExternalModel<WithOthers<Op>, Op> {};

template <typename Op, Header header = Header::None> void attachStatement(MLIRContext &context) {
  Op::template attachInterface<Statement<Op, header>>(context);
}

template <typename... Ops> void attachWithOthers(MLIRContext &context) {
  (Ops::template attachInterface<WithOthers<Ops>>(context), ...);
}

void attachToLoops(MLIRContext *context, scf::SCFDialect *) {
  attachStatement<scf::ForOp>(*context);
  attachStatement<scf::IfOp>(*context);
  attachWithOthers<scf::YieldOp>(*context);
}

void attachToKernels(MLIRContext *context, ssk::SSKDialect *) {
  attachWithOthers<ssk::KernelOp, ssk::ReturnOp, ssk::ProgramIdOp, ssk::AllocOp, ssk::YieldOp,
                   ssk::YieldPartOp>(*context);
  attachStatement<ssk::ReadOp>(*context);
  attachStatement<ssk::WriteOp>(*context);
  attachStatement<ssk::SyncOp>(*context);
  attachStatement<ssk::LoadOp, Header::Tile>(*context);
  attachStatement<ssk::StoreOp, Header::Tile>(*context);
  attachStatement<ssk::SplatOp, Header::Tile>(*context);
  attachStatement<ssk::IotaOp, Header::Tile>(*context);
  attachStatement<ssk::MapOp, Header::Tile>(*context);
  attachStatement<ssk::ReduceOp, Header::Tile>(*context);
  attachStatement<ssk::DotOp, Header::Tile>(*context);
  attachStatement<ssk::AccumulateOp, Header::Tile>(*context);
  attachStatement<ssk::PartsOp, Header::Parts>(*context);
  attachStatement<ssk::FillOp, Header::Fill>(*context);
  attachStatement<ssk::CopyOp, Header::Copy>(*context);
  attachStatement<ssk::WaitCopiesOp, Header::Copy>(*context);
  attachStatement<ssk::MatmulOp, Header::Matmul>(*context);
  attachStatement<ssk::TopKOp, Header::TopK>(*context);
  attachStatement<ssk::CallOp, Header::Routine>(*context);
}

} // namespace

void cuda::attachCudaStatements(MLIRContext &context) {
  auto known = RegisteredOperationName::lookup(ssk::LoadOp::getOperationName(), &context);
  if (known && known->hasInterface<CudaStatement>())
    return;
  DialectRegistry registry;
  registry.addExtension(&attachToLoops);
  registry.addExtension(&attachToKernels);
  context.appendDialectRegistry(registry);
}
