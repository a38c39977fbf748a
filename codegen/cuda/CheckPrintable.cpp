//===- CheckPrintable.cpp - What the CUDA printer accepts -----------------===//

#include "codegen/common/CppExpr.h"
#include "codegen/cuda/CudaPrinter.h"
#include "codegen/cuda/CudaStatement.h"
#include "codegen/cuda/CudaTypes.h"
#include "passes/ssk/LaneLayout.h"
#include "passes/ssk/ScratchLayout.h"

using namespace mlir;
using namespace sinkstate;
using cuda::kMaxStaticShared;

static constexpr int64_t kMaxThreads = 1024;

static LogicalResult checkOp(Operation *op) {
  if (auto statement = dyn_cast<cuda::CudaStatement>(op))
    return statement.checkCuda();
  if (codegen::isCppScalarOp(op))
    return success();
  return op->emitOpError("cannot be printed as CUDA C++, expected an operation of ssk, "
                         "scf.for, scf.if, or scalar arithmetic on f32, f64, i32, i64, "
                         "index or i1");
}

LogicalResult cuda::checkCudaPrintable(ssk::KernelOp kernel) {
  attachCudaStatements(*kernel.getContext());
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
  if (info.sharedBytes > ssk::kMostBlockBytes)
    return kernel.emitOpError("needs ")
           << info.sharedBytes << " bytes of shared memory a block (" << perBlock
           << (perBlock == 1 ? " program" : " programs") << "), expected at most "
           << ssk::kMostBlockBytes << ": "
           << (perBlock == 1 ? "make its scratch smaller" : "lower programs_per_block");
  bool failedAny = false;
  kernel.getBody().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { failedAny |= failed(checkOp(op)); });
  return failure(failedAny);
}
