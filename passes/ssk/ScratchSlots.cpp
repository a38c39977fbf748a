//===- ScratchSlots.cpp - Which scratch can share memory ------------------===//

#include "passes/ssk/ScratchSlots.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace sinkstate::ssk;

static constexpr int64_t kAlignment = 16;

static int64_t getBytes(AllocOp alloc) {
  auto type = cast<SharedType>(alloc.getResult().getType());
  int64_t elements = type.getRank() == 2 ? type.getShape()[0] * alloc.getRowPitch()
                                         : type.getNumElements();
  int64_t bytes = elements * type.getElementType().getIntOrFloatBitWidth() / 8;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

SmallVector<ScratchSlot> sinkstate::ssk::getScratchSlots(KernelOp kernel) {
  SmallVector<ScratchSlot> slots;
  llvm::DenseMap<int64_t, unsigned> places;
  for (AllocOp alloc : kernel.getBody().getOps<AllocOp>()) {
    unsigned place = slots.size();
    if (std::optional<int64_t> slot = alloc.getSlot())
      place = places.try_emplace(*slot, place).first->second;
    if (place == slots.size())
      slots.emplace_back();
    slots[place].allocs.push_back(alloc);
    slots[place].bytes = std::max(slots[place].bytes, getBytes(alloc));
  }
  return slots;
}

int64_t sinkstate::ssk::getScratchBytes(KernelOp kernel) {
  int64_t bytes = 0;
  for (const ScratchSlot &slot : getScratchSlots(kernel))
    bytes += slot.bytes;
  return bytes;
}

namespace {
/// From the first to the last operation that needs a scratch, by number.
struct LiveRange {
  AllocOp alloc;
  size_t place; ///< among the kernel's scratch
  int64_t first = INT64_MAX, last = -1;
};

/// The numbers of an operation and of the last one inside it.
struct Extent {
  int64_t begin, end;
};
} // namespace

static int64_t numberOperations(Block &block, int64_t next,
                                llvm::DenseMap<Operation *, Extent> &extents) {
  for (Operation &op : block) {
    int64_t begin = next++;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        next = numberOperations(inner, next, extents);
    extents[&op] = {begin, next - 1};
  }
  return next;
}

/// What is used in a loop is needed through all of it.
static Operation *getOutermostLoop(Operation *op) {
  Operation *outermost = op;
  // Parts are a loop too, where a warp runs several of them.
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (isa<scf::ForOp, PartsOp>(parent))
      outermost = parent;
  return outermost;
}

static SmallVector<LiveRange> getLiveRanges(KernelOp kernel) {
  llvm::DenseMap<Operation *, Extent> extents;
  numberOperations(kernel.getBody().front(), 0, extents);
  SmallVector<LiveRange> ranges;
  for (AllocOp alloc : kernel.getBody().getOps<AllocOp>()) {
    LiveRange range{alloc, ranges.size()};
    for (Operation *user : alloc->getUsers()) {
      Extent extent = extents.lookup(getOutermostLoop(user));
      range.first = std::min(range.first, extent.begin);
      range.last = std::max(range.last, extent.end);
    }
    ranges.push_back(range);
  }
  return ranges;
}

namespace {
struct OpenSlot {
  int64_t bytes = 0, last = -1;
};
} // namespace

/// The free slot that grows least, then the smallest; a new one if none is free.
static unsigned chooseSlot(SmallVector<OpenSlot> &slots, const LiveRange &range, int64_t bytes) {
  unsigned best = slots.size();
  auto getCost = [&](unsigned i) {
    return std::pair(std::max<int64_t>(0, bytes - slots[i].bytes), slots[i].bytes);
  };
  for (unsigned i = 0; i < slots.size(); ++i)
    if (slots[i].last < range.first && (best == slots.size() || getCost(i) < getCost(best)))
      best = i;
  if (best == slots.size())
    slots.emplace_back();
  return best;
}

void sinkstate::ssk::assignScratchSlots(KernelOp kernel) {
  SmallVector<LiveRange> ranges = getLiveRanges(kernel);
  llvm::sort(ranges, [](const LiveRange &a, const LiveRange &b) {
    return std::pair(a.first, a.place) < std::pair(b.first, b.place);
  });
  SmallVector<OpenSlot> slots;
  for (LiveRange &range : ranges) {
    int64_t bytes = getBytes(range.alloc);
    unsigned slot = chooseSlot(slots, range, bytes);
    slots[slot].bytes = std::max(slots[slot].bytes, bytes);
    slots[slot].last = range.last;
    range.alloc.setSlot(slot);
  }
}
