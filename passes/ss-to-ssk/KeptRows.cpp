//===- KeptRows.cpp - the rows that a compaction forms --------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// Weights are known before rows are, and what is kept follows from weights alone.
// A compaction that keeps a third of its block forms that third: the rows of the
// first factor that belong to it are brought together, and the products end there.
//
//===----------------------------------------------------------------------===//
#include "CompactLowering.h"

using namespace mlir;

namespace sinkstate {

void CompactLowering::formRows(BlockSide &side, Value by, Value with,
                               Value product) {
  if (formsKept) {
    side.by = by;
    side.with = with;
    return;
  }
  if (with)
    k.matmul(by, with, product, false, false);
  k.matmul(with ? product : by, side.rows, side.rows, false, false);
}

void CompactLowering::formKeptRows(Value kept) {
  if (!formsKept)
    return;
  k.note("the rows that stay, and no others");
  Value zero = k.index(0);
  Value chosen = newOrder ? matrix("chosen") : Value();
  Value product = matrix("rotation");
  for (BlockSide *side : {&left, &right}) {
    askAhead();
    Value by = side->by;
    if (chosen) {
      k.loop(zero, kept, 1, [&](Value i) {
        Value source = k.toIndex(k.read(newOrder, i));
        k.store(k.load(matrixRow(), by, {source, zero}), chosen, {i, zero});
      });
      by = chosen;
    }
    if (side->with) {
      k.matmulRows(by, side->with, product, false, false, kept);
      by = product;
    }
    side->formed =
        k.name("formed", k.shared({m, side->columns}, k.f32()));
    k.matmulRows(by, side->rows, side->formed, false, false, kept);
  }
}

} // namespace sinkstate
