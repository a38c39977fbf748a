//===- CudaMemoryOps.cpp - Loads, stores and writes -----------------------===//

#include "codegen/cuda/CudaTypes.h"
#include "codegen/cuda/KernelPrinter.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::codegen;
using namespace sinkstate::cuda;

/// Declares the registers of a tile, unless its variable exists already.
void KernelPrinter::declareTile(Value tile, StringRef initializer) {
  if (!plan.isDeclaredBy(tile))
    return;
  auto type = cast<ssk::TileType>(tile.getType());
  out.line(getCppScalarType(type.getElementType()) + " " + getName(tile) +
           getExtents(getRegisterShape(type)) + initializer + ";");
}

/// The part of a load's or store's name that says how the tile lies over lanes.
static StringRef getShapeSuffix(ssk::TileType type) {
  if (!type.hasLanes())
    return type.getRank() == 2 ? "all_rows" : "all";
  if (type.getRank() == 1)
    return "lanes";
  return type.getLanes() == 1 ? "rows" : "columns";
}

/// `<float4, 128>`: the access and, for a tile over lanes, its length there.
static std::string getAccessArguments(ssk::TileType type, std::optional<int64_t> vector) {
  std::string text = "<" + getAccessType(type.getElementType(), vector.value_or(1)).str();
  if (type.hasLanes())
    text += ", " + std::to_string(type.getShape()[type.getLanes()]);
  return text + ">";
}

/// `&rows[offset]`, or `&scratch.rows[i][0]`.
static std::string getAddress(std::string element) { return "&" + element; }

/// The distance between rows: given, the scratch's own, or the row's length.
template <typename AccessOp>
static std::string getStride(AccessOp op, ssk::TileType tile, std::string given) {
  if (tile.getRank() == 1)
    return {};
  if (op.getStride())
    return ", " + given;
  auto scratch = op.getMemory().template getDefiningOp<ssk::AllocOp>();
  int64_t stride = scratch ? scratch.getRowPitch() : tile.getShape().back();
  return ", " + std::to_string(stride);
}

/// Whether rows are read at once of memory that the kernel writes. Decodes have not the
/// registers, and are faster without.
bool KernelPrinter::isReadAtOnce(ssk::LoadOp load) {
  ssk::TileType tile = load.getResult().getType();
  return kernel.getRole() == "compact" && getShapeSuffix(tile) == "rows" && load.getLimit() &&
         isa<BlockArgument>(load.getMemory()) && isWritten(load.getMemory());
}

void KernelPrinter::print(ssk::LoadOp load) {
  ssk::TileType tile = load.getResult().getType();
  declareTile(load.getResult());
  std::string given = load.getStride() ? getText(load.getStride()) : "";
  std::string limit = load.getLimit() ? ", " + getText(load.getLimit()) : "";
  out.line("ss::load_" + getShapeSuffix(tile) + (isReadAtOnce(load) ? "_at_once" : "") +
           getAccessArguments(tile, load.getVector()) +
           "(" + getName(load.getResult()) + ", " +
           getAddress(getElement(load.getMemory(), load.getIndices())) +
           getStride(load, tile, given) + limit + ");");
}

void KernelPrinter::print(ssk::StoreOp store) {
  ssk::TileType tile = store.getValue().getType();
  std::string given = store.getStride() ? getText(store.getStride()) : "";
  std::string limit = store.getLimit() ? ", " + getText(store.getLimit()) : "";
  bool byFirst = isGuarded(store, store.getMemory());
  if (byFirst) {
    out.line("if (warp == 0)");
    out.indent();
  }
  out.line("ss::store_" + getShapeSuffix(tile) + getAccessArguments(tile, store.getVector()) +
           "(" + getAddress(getElement(store.getMemory(), store.getIndices())) + ", " +
           getName(store.getValue()) + getStride(store, tile, given) + limit + ");");
  if (byFirst)
    out.outdent();
}

/// `ss::copy_row<float4, 128>(&scratch.rows[i][0], &pool[offset], limit)`.
void KernelPrinter::print(ssk::CopyOp copy) {
  auto target = cast<ssk::SharedType>(copy.getTarget().getType());
  std::string to = getText(copy.getTarget());
  if (copy.getRow())
    to = getAddress(to + "[" + getText(copy.getRow()) + "][0]");
  std::string limit = copy.getLimit() ? ", " + getText(copy.getLimit()) : "";
  out.line("ss::copy_row<" + getAccessType(target.getElementType(), copy.getVector().value_or(1)) +
           ", " + Twine(target.getShape().back()) + ">(" + to + ", " +
           getAddress(getElement(copy.getSource(), copy.getOffset())) + limit + ");");
}

void KernelPrinter::print(ssk::WaitCopiesOp) { out.line("ss::wait_copies();"); }

void KernelPrinter::print(ssk::FillOp fill) {
  std::string guard = isGuarded(fill, fill.getMemory()) ? "if (warp == 0) " : "";
  out.line(guard + "ss::fill(" + getText(fill.getMemory()) + ", " + getText(fill.getValue()) +
           ");");
}

void KernelPrinter::print(ssk::ReadOp read) { printScalar(read.getResult()); }

/// Writes that follow each other share one `if`: lane 0 writes what every lane
/// knows.
void KernelPrinter::print(ssk::WriteOp first) {
  SmallVector<ssk::WriteOp> writes;
  for (Operation *op = first; op; op = op->getNextNode()) {
    if (auto write = dyn_cast<ssk::WriteOp>(op))
      writes.push_back(write);
    else if (!forming.isInlined(op))
      break;
  }
  auto getStatementText = [&](ssk::WriteOp write) {
    return getElement(write.getMemory(), write.getIndices()) + " = " +
           getText(write.getValue()) + ";";
  };
  std::string condition = isGuarded(first, first.getMemory()) ? "if (warp == 0 && lane == 0)" : "if (lane == 0)";
  if (writes.size() > 1)
    out.open(condition);
  else {
    out.line(condition);
    out.indent();
  }
  for (ssk::WriteOp write : writes)
    out.line(getStatementText(write));
  if (writes.size() > 1)
    out.close();
  else
    out.outdent();
}
