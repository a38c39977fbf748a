//===- NextState.cpp - the state that is wanted next -----------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "NextState.h"
#include "TokenLowering.h"
#include <algorithm>

using namespace mlir;

namespace sinkstate {

NextState::NextState(KernelBuilder &k, const LayerShape &shape,
                     const KernelArguments &arguments, Value program)
    : k(k), shape(shape), arguments(arguments), tables(k, shape, arguments) {
  k.note("the state that comes next: its memory is asked for in time");
  Value heads = k.index(shape.heads), zero = k.index(0);
  Value batchRow = k.div(program, heads);
  Value slot = k.toIndex(k.read(arguments["slots"], batchRow));
  slot = k.select(k.less(slot, zero), zero, slot);
  tables.locate(slot, k.rem(program, heads));
  tables.readExtent();
  pairs = k.add(tables.count, k.index(1));
  // About as many weights as states have components; the rest follows.
  constexpr int64_t kWeights = 32;
  k.prefetch(arguments["weights"], tables.base,
             std::min(kWeights, shape.rankBound));
  if (!shape.channelDecay)
    k.prefetch(arguments["buffer_g"], tables.bufferG(zero), shape.capacity);
  wantToken(batchRow);
}

NextState::NextState(const StateTables &tables)
    : k(tables.k), shape(tables.shape), arguments(tables.arguments),
      tables(tables), pairs(tables.count) {}

void NextState::wantShare(int64_t share) {
  k.loop(k.index(share), tables.rank, kShares, [&](Value i) { wantRow(i); });
  k.loop(k.index(share), pairs, kShares, [&](Value j) { wantPair(j); });
}

void NextState::wantToken(Value batchRow) {
  TokenLowering token(tables, batchRow);
  auto want = [&](StringRef name, Value head, int64_t length) {
    k.prefetch(arguments[name], token.offset(name, head, length), length);
  };
  want("q", tables.keyHead, shape.dk);
  want("k", tables.keyHead, shape.dk);
  want("v", tables.head, shape.dv);
  if (shape.channelDecay)
    want("gate", tables.head, shape.dk);
  want("y", tables.head, shape.dv);
}

void NextState::wantRow(Value i) {
  // Beyond its last row its first one: an address that is in the cache by then.
  Value row = k.select(k.less(i, tables.rank), i, k.index(0));
  // The first line of a page that the translation buffer does not have holds up the
  // requests behind it: that of a later row goes ahead of them. It need not be the
  // state's.
  constexpr int64_t kRowsAhead = 4;
  k.prefetch(arguments["rows"],
             tables.row(k.add(row, k.index(kRowsAhead)), 0), 1);
  k.prefetch(arguments["rows"], tables.row(row, 0), shape.rowLength());
}

void NextState::wantPair(Value j) {
  Value pair = k.select(k.less(j, pairs), j, k.index(0));
  k.prefetch(arguments["buffer_k"], tables.bufferK(pair), shape.dk);
  k.prefetch(arguments["buffer_u"], tables.bufferU(pair), shape.dv);
  if (shape.channelDecay)
    k.prefetch(arguments["buffer_g"], tables.bufferG(pair), shape.dk);
}

void NextState::wantRowsFrom(Value first) {
  k.loop(first, tables.rank, 1, [&](Value i) { wantRow(i); });
}

void NextState::wantPairsFrom(Value first) {
  k.loop(first, pairs, 1, [&](Value j) { wantPair(j); });
}

} // namespace sinkstate
