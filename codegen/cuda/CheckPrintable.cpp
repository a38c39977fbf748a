//===- CheckPrintable.cpp - What the CUDA printer accepts -----------------===//

#include "codegen/common/CppExpr.h"
#include "codegen/cuda/CudaPrinter.h"
#include "codegen/cuda/CudaTypes.h"
#include "passes/ssk/LaneLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sinkstate;
using cuda::kMaxStaticShared;

/// Shared memory that data center GPUs give one block; the smallest give 99 KB.
static constexpr int64_t kMaxSharedBytes = 227 * 1024;
static constexpr int64_t kMaxThreads = 1024;

/// Elements that one access of the tile may cover at most.
static int64_t getMaxVector(ssk::TileType tile) {
  int64_t last = tile.getRank() - 1;
  int64_t extent = tile.getShape()[last];
  return tile.getLanes() == last ? ssk::getLaneWidth(extent) : extent;
}

static LogicalResult checkVector(Operation *op, ssk::TileType tile,
                                 std::optional<int64_t> vector) {
  int64_t count = vector.value_or(1);
  int64_t max = getMaxVector(tile);
  if (max % count != 0)
    return op->emitOpError("has vector ")
           << count << ", expected a divisor of " << max
           << ", the consecutive elements that a lane holds of " << tile;
  if (count * cuda::getElementBytes(tile.getElementType()) > 16)
    return op->emitOpError("has vector ")
           << count << " of " << tile.getElementType() << ", expected at most 16 bytes";
  return success();
}

static LogicalResult checkLoop(scf::ForOp loop) {
  llvm::APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive())
    return loop.emitOpError("has a step that is no positive constant, expected one");
  return success();
}

/// Values that cross control flow become variables: scalars or tiles.
static LogicalResult checkCarriedTypes(Operation *op) {
  for (Type type : op->getResultTypes())
    if (!isa<ssk::TileType>(type) && codegen::getCppScalarType(type).empty())
      return op->emitOpError("has a result of type ")
             << type << ", expected a scalar or a tile";
  return success();
}

static LogicalResult checkOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ssk::LoadOp>([&](ssk::LoadOp load) {
        return checkVector(op, load.getResult().getType(), load.getVector());
      })
      .Case<ssk::StoreOp>([&](ssk::StoreOp store) {
        return checkVector(op, store.getValue().getType(), store.getVector());
      })
      .Case<scf::ForOp>([&](scf::ForOp loop) {
        return failed(checkLoop(loop)) ? failure() : checkCarriedTypes(op);
      })
      .Case<scf::IfOp>([&](auto) { return checkCarriedTypes(op); })
      .Case<ssk::PartsOp>([&](ssk::PartsOp parts) -> LogicalResult {
        if (!parts.getThrough().empty())
          return success();
        return op->emitOpError("has no scratch to add up its parts through, expected "
                               "ssk-prepare to have run");
      })
      .Case<ssk::KernelOp, ssk::ReturnOp, ssk::ProgramIdOp, ssk::AllocOp, ssk::FillOp,
            ssk::ReadOp, ssk::WriteOp, ssk::SplatOp, ssk::IotaOp, ssk::MapOp, ssk::YieldOp, ssk::ReduceOp,
            ssk::DotOp, ssk::AccumulateOp,
            ssk::MatmulOp, ssk::TopKOp, ssk::CallOp, ssk::SyncOp, ssk::CopyOp, ssk::WaitCopiesOp,
            ssk::YieldPartOp, scf::YieldOp>(
          [](auto) { return success(); })
      .Default([](Operation *other) -> LogicalResult {
        if (codegen::isCppScalarOp(other))
          return success();
        return other->emitOpError("cannot be printed as CUDA C++, expected an "
                                  "operation of ssk, scf.for, scf.if, or scalar "
                                  "arithmetic on f32, f64, i32, i64, index or i1");
      });
}

LogicalResult cuda::checkCudaPrintable(ssk::KernelOp kernel) {
  int64_t perBlock = kernel.getProgramsPerBlock();
  if (perBlock * ssk::kWarpSize > kMaxThreads)
    return kernel.emitOpError("has programs_per_block = ")
           << perBlock << ", expected at most " << kMaxThreads / ssk::kWarpSize;
  CudaKernelInfo info = getCudaKernelInfo(kernel);
  if (info.parts > 1 && info.loops)
    return kernel.emitOpError("of role '")
           << *kernel.getRole()
           << "' has parts, expected none: its blocks run programs in a loop, "
              "which all but the first warp of a block would leave";
  if (info.parts > 1 && info.sharedBytes * info.parts > kMaxStaticShared)
    return kernel.emitOpError("needs ")
           << info.sharedBytes << " bytes of shared memory for each of " << info.parts
           << " warps, expected at most " << kMaxStaticShared << " for all of them";
  if (info.sharedBytes > kMaxSharedBytes)
    return kernel.emitOpError("needs ")
           << info.sharedBytes << " bytes of shared memory a block (" << perBlock
           << " programs), expected at most " << kMaxSharedBytes
           << ": lower programs_per_block";
  bool failedAny = false;
  kernel.getBody().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { failedAny |= failed(checkOp(op)); });
  return failure(failedAny);
}
