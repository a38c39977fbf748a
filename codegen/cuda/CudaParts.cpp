//===- CudaParts.cpp - Parts of a program on several warps ----------------===//

#include "codegen/cuda/CudaTypes.h"
#include "codegen/cuda/KernelPrinter.h"
#include "dialect/ssk/SSKWarps.h"
#include "passes/ssk/LaneLayout.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cuda;

/// `float4, 128`: the widest access of a lane to scratch, and the tile's length.
static std::string getPartArguments(Value tile) {
  auto type = cast<ssk::TileType>(tile.getType());
  int64_t length = type.getShape()[0];
  return (getAccessType(type.getElementType(), ssk::getLaneWidth(length)) + ", " +
          Twine(length))
      .str();
}

/// Every warp runs its parts and keeps what they add up to; the first one adds the
/// others' and goes on alone. The warp of the last part goes on with the last body.
void KernelPrinter::print(ssk::PartsOp parts) {
  ValueRange own(parts.getLast().getArguments());
  for (Value tile : parts.getSums())
    declareTile(tile);
  for (Value tile : own)
    declareTile(tile);
  std::string part = getName(parts.getPart()).str();
  std::string count = std::to_string(parts.getCount());
  std::string lastPart = std::to_string(parts.getCount() - 1);
  out.open("for (int64_t " + part + " = warp; " + part + " < " + count + "; " + part +
           " += warps)");
  printBlock(parts.getBody().front(), /*isTail=*/false);
  printYields(own, parts.getYielded());
  // What the last part has, the last body goes on with.
  bool isOne = own.size() == 1;
  if (isOne) {
    out.line("if (" + part + " < " + lastPart + ")");
    out.indent();
  } else {
    out.open("if (" + part + " < " + lastPart + ")");
  }
  printKept(parts, own, part + " == warp");
  isOne ? out.outdent() : out.close();
  out.close();
  out.open("if (warp == warps - 1)");
  printBlock(parts.getLast().front(), /*isTail=*/false);
  printYields(parts.getSums(), parts.getLastYielded());
  printKept(parts, parts.getSums(), "warp == " + lastPart);
  out.close();
  // The placement of syncs takes the parts' end for one of either kernel.
  out.line("if (warps > 1)");
  out.line("  __syncthreads();");
  out.line("else");
  out.line("  __syncwarp();");
  out.line("if (warp > 0)");
  out.line("  return;");
  for (auto [scratch, sum] : llvm::zip(parts.getThrough(), parts.getSums()))
    out.line("ss::add_parts<" + getPartArguments(sum) + ", warps>(" + getName(sum) + ", " +
             getText(scratch) + ", sizeof(scratch));");
  out.blank();
}

/// `ss::keep_part<float4, 128>(scratch.part_sum, h_q, isFirst)`, one for each sum.
void KernelPrinter::printKept(ssk::PartsOp parts, ValueRange tiles, StringRef isFirst) {
  for (auto [scratch, tile] : llvm::zip(parts.getThrough(), tiles))
    out.line("ss::keep_part<" + getPartArguments(tile) + ">(" + getText(scratch) + ", " +
             getName(tile) + ", " + isFirst + ");");
}

/// Whether the first warp alone writes this memory here: several warps are there,
/// share the memory and would all write the same.
bool KernelPrinter::isGuarded(Operation *op, Value memory) const {
  if (info.warps > 1) {
    for (; op != kernel; op = op->getParentOp())
      if (ssk::isOverWarps(op))
        return false;
    return true;
  }
  // With parts, every warp has its own scratch, and the first one goes on alone.
  if (!parts || !isa<ssk::GlobalType>(memory.getType()))
    return false;
  Operation *here = parts->getBlock()->findAncestorOpInBlock(*op);
  return !(here && parts->isBeforeInBlock(here));
}
