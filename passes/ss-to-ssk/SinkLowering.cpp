//===- SinkLowering.cpp - the sink of a compacted state -------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// H = n c^T + U V^T (docs/state-math.md section 5), n = vbar / |vbar|: a length of
// vbar would only be divided out again, and may not be a float32 when squared. The
// sink is the first row of a state, [c / |c| | n] with the weight |c|, so that
// decode and densify read it as they read every component. Pairs hold whole updates
// u_j; that c takes its part of each may wait for the compaction, as decays do:
//   c <- D c + sum_j (n . u_j / |n|^2) D_j k_j,   u_j <- u_j - omega_j n.
// What is left of the block is orthogonal to n, and is all that is truncated.
// (|n| is 1 up to rounding; the division keeps what is left orthogonal.)
//
//===----------------------------------------------------------------------===//
#include "CompactLowering.h"

using namespace mlir;

namespace sinkstate {

/// The sum of products of two tiles, f64.
static Value dotWide(KernelBuilder &k, Value a, Value b) {
  auto type = cast<ssk::TileType>(a.getType());
  Type wide = k.lanes(type.getShape(), k.f64());
  return k.reduceAdd(k.map(wide, {a, b},
                           [&](ValueRange e) {
                             return k.mul(k.extend(e[0]), k.extend(e[1]));
                           }),
                     0);
}

void CompactLowering::findSink() {
  k.note("the sink: the first row where the head has one (not zeros)");
  const LayerShape &s = t.shape;
  Value zero = k.index(0);
  sinkDirection = k.name(
      "sink_direction", k.load(t.valueTile(), t.arguments["sink"],
                               k.mul(t.head, k.index(s.dv))));
  directionSquare = k.name("direction_square",
                           dotWide(k, sinkDirection, sinkDirection));
  // A state that got no block has no place for one either.
  Value room = k.toIndex(k.read(t.arguments["row_capacity"], t.state));
  hasSink = k.name("has_sink", k.both(k.less(k.wide(0), directionSquare),
                                      k.less(zero, room)));
  sinkRows = k.name("sink_rows", k.select(hasSink, k.index(1), zero));
  wasStored = k.name("was_stored",
                     k.both(hasSink, k.less(zero, t.rank)));
  // From here on a state's rows are its content.
  t.base = k.name("content", k.add(t.base, sinkRows));
  t.rank = k.name("content_rank",
                  k.select(wasStored, k.sub(t.rank, k.index(1)), t.rank));
}

/// c as it was after the last compaction, with the decays since.
Value CompactLowering::decayedSink() {
  Value row = k.index(-1); // before the content
  Type tile = t.keyTile();
  return k.choose(
      wasStored,
      [&]() -> Values {
        Value direction = k.load(tile, t.arguments["rows"], t.row(row, 0));
        Value length = k.name(
            "sink_length", k.read(t.arguments["weights"], k.add(t.base, row)));
        if (t.shape.channelDecay)
          return {k.map(tile, {direction, logDecay}, [&](ValueRange e) {
            return k.mul(k.mul(e[0], length), k.exp(e[1]));
          })};
        Value decayed = k.name("decayed_length", k.mul(length, k.exp(logDecay)));
        return {k.map(tile, direction,
                      [&](ValueRange e) { return k.mul(e[0], decayed); })};
      },
      [&]() -> Values { return {k.splat(tile, k.real(0))}; })[0];
}

/// Moves what the block's left sides have of n to c.
Value CompactLowering::takeSinkOut(Value sink) {
  Value zero = k.index(0);
  return k.loop(
      zero, k.index(m), 1, {sink}, [&](Value i, ValueRange carried) -> Values {
        Value u = k.load(t.valueTile(), left.rows, {i, zero});
        Value v = k.load(t.keyTile(), right.rows, {i, zero});
        Value share = k.name("omega", k.div(dotWide(k, u, sinkDirection),
                                            directionSquare));
        Value part = k.name("part", k.neg(k.narrow(share)));
        u = k.map(t.valueTile(), {u, sinkDirection}, [&](ValueRange e) {
          return k.fma(part, e[1], e[0]);
        });
        k.store(u, left.rows, {i, zero});
        Value coef = k.name(
            "coef", k.narrow(k.mul(share, k.read(blockWeights, i))));
        return {k.map(t.keyTile(), {carried[0], v}, [&](ValueRange e) {
          return k.fma(coef, e[1], e[0]);
        })};
      })[0];
}

void CompactLowering::separateSink() {
  k.branch(hasSink, [&] {
    k.note("the sink takes its part of the block, exactly");
    Value sink = k.name("sink_key", takeSinkOut(decayedSink()));
    Value length = k.name("sink_size", k.sqrt(dotWide(k, sink, sink)));
    // In float64, where the smallest length has an inverse.
    Value inverse = k.name(
        "inverse", k.select(k.less(k.wide(0), length),
                            k.div(k.wide(1), length), k.wide(0)));
    Value row = k.index(-1);
    t.storeRow(k.map(t.keyTile(), sink,
                     [&](ValueRange e) {
                       return k.narrow(k.mul(k.extend(e[0]), inverse));
                     }),
               row, 0);
    t.storeRow(sinkDirection, row, t.shape.dk);
    k.write(k.narrow(length), t.arguments["weights"], k.add(t.base, row));
  });
}

} // namespace sinkstate
