//===- DensifyLowering.cpp - H itself, decays and buffer included ---------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "Lowerings.h"

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

namespace {
/// Forms a few columns of H at a time (rows of the dense layout) as a register
/// tile. A dense state may be written over itself: the columns at hand are read
/// before they are written and nothing else of the old matrix is used.
class Densify {
public:
  Densify(StateTables &tables, int64_t columns)
      : t(tables), k(tables.k), n(columns), tile(k.lanes({n, t.shape.dv})),
        part(k.replicated({n})) {}

  void run(Value output);

private:
  Value denseColumns(Value c);
  Value components(Value c);
  Value bufferedPairs(Value c, Value sum);
  void storeColumns(Value sum, Value c);
  /// sum + coef u^T.
  Value addOuter(Value sum, Value coef, Value u) {
    Value next =
        k.map(tile, {sum, coef, u}, {{0, 1}, {0}, {1}},
              [&](ValueRange e) { return k.fma(e[1], e[2], e[0]); });
    return k.name("h", next);
  }
  /// exp(G) of the columns from c on: scalar or tile [n].
  Value decay(Value c);
  Value times(Value coef, Value factor) {
    if (factor.getType() == part)
      return k.map(part, {coef, factor},
                   [&](ValueRange e) { return k.mul(e[0], e[1]); });
    return k.map(part, coef,
                 [&](ValueRange e) { return k.mul(e[0], factor); });
  }
  /// The running log-decay at the columns from c on.
  Value runningDecayAt(Value c);

  StateTables &t;
  KernelBuilder &k;
  int64_t n;
  Type tile, part;
  Value logDecay; ///< scalar decays only
  Value place;    ///< where the matrix goes in `out`
  // Narrow storage only: whether it goes to `rows` instead, and where there.
  Value isStored, storedPlace;
};
} // namespace

Value Densify::runningDecayAt(Value c) {
  Value hasPairs = k.less(k.index(0), t.count);
  Value last = k.sub(t.count, k.index(1));
  Value at = k.select(hasPairs, k.add(t.bufferG(last), c), k.index(0));
  Value limit = k.select(hasPairs, k.index(n), k.index(0));
  return k.load(part, t.arguments["buffer_g"], at, Value(), limit);
}

Value Densify::decay(Value c) {
  if (!t.shape.channelDecay)
    return k.name("decay", k.exp(logDecay));
  return k.map(part, runningDecayAt(c),
               [&](ValueRange e) { return k.exp(e[0]); });
}

Value Densify::denseColumns(Value c) {
  Value h = k.name("h_rows", k.load(tile, t.arguments["rows"], t.denseRow(c),
                                    k.index(t.shape.dv)));
  Value factor = decay(c);
  if (factor.getType() == part)
    return k.map(tile, {h, factor}, {{0, 1}, {0}},
                 [&](ValueRange e) { return k.mul(e[0], e[1]); });
  return k.map(tile, h, [&](ValueRange e) { return k.mul(e[0], factor); });
}

Value Densify::components(Value c) {
  Value factor = decay(c);
  Value zeros = k.splat(tile, k.real(0));
  return k.loop(
      k.index(0), t.rank, 1, {zeros}, [&](Value i, ValueRange sum) -> Values {
        Value coef = k.load(part, t.arguments["rows"], k.add(t.row(i, 0), c));
        Value w = k.read(t.arguments["weights"], k.add(t.base, i));
        coef = times(times(coef, w), factor);
        Value u = k.load(t.valueTile(), t.arguments["rows"],
                         t.row(i, t.shape.dk));
        return {addOuter(sum[0], coef, u)};
      })[0];
}

Value Densify::bufferedPairs(Value c, Value sum) {
  Value now = t.shape.channelDecay ? runningDecayAt(c) : logDecay;
  return k.loop(
      k.index(0), t.count, 1, {sum}, [&](Value j, ValueRange carried) -> Values {
        Value coef =
            k.load(part, t.arguments["buffer_k"], k.add(t.bufferK(j), c));
        Value factor;
        if (t.shape.channelDecay) {
          Value g =
              k.load(part, t.arguments["buffer_g"], k.add(t.bufferG(j), c));
          factor = k.map(part, {now, g}, [&](ValueRange e) {
            return k.exp(k.sub(e[0], e[1]));
          });
        } else {
          Value g = k.read(t.arguments["buffer_g"], t.bufferG(j));
          factor = k.name("factor", k.exp(k.sub(now, g)));
        }
        Value u =
            k.load(t.valueTile(), t.arguments["buffer_u"], t.bufferU(j));
        return {addOuter(carried[0], times(coef, factor), u)};
      })[0];
}

void Densify::run(Value output) {
  place = output;
  if (t.shape.isNarrow() && t.shape.mayBeDense()) {
    isStored = k.name("is_stored", k.less(output, k.index(0)));
    storedPlace = k.name("stored_at", k.sub(k.index(-1), output));
  }
  if (!t.shape.channelDecay)
    logDecay = t.runningDecay();
  k.independentLoop(t.shape.dk, n, [&](Value c) {
    k.note("columns of H: what is stored, then the buffered pairs");
    Value sum = !t.shape.mayBeDense()
                    ? components(c)
                    : k.choose(
                          t.isDense, [&] { return Values{denseColumns(c)}; },
                          [&] { return Values{components(c)}; })[0];
    sum = bufferedPairs(c, sum);
    storeColumns(sum, c);
  });
}

void Densify::storeColumns(Value sum, Value c) {
  Value stride = k.index(t.shape.dv), offset = k.mul(c, stride);
  auto storeOut = [&] {
    k.store(sum, t.arguments["out"], k.add(place, offset), stride);
  };
  if (!isStored)
    return storeOut();
  // `out` has f32; a dense state that stays in the pool is rounded like rows.
  k.branch(
      isStored,
      [&] {
        t.storeRounded(sum, t.arguments["rows"], k.add(storedPlace, offset), c,
                       0, stride);
      },
      storeOut);
}

LogicalResult lowerDensify(ss::FusedOp fused, const LayerShape &shape,
                           const KernelArguments &arguments,
                           const KernelChoices &choices, KernelBuilder &k) {
  for (Operation &op : fused.getBody().front().without_terminator())
    if (!isa<ss::DensifyOp>(op))
      return op.emitOpError("has no lowering inside a densify kernel");
  overWork(k, arguments, [&](Value program, Value state) {
    StateTables tables(k, shape, arguments);
    tables.locateState(state);
    tables.readExtent(arguments["count_ahead"]);
    if (shape.mayBeDense())
      tables.readRounding(arguments["count_ahead"]);
    Densify(tables, largestDivisor(shape.dk, choices.rowsInFlight))
        .run(k.name("output",
                    k.toIndex(k.read(arguments["out_base"], program))));
  });
  return success();
}

} // namespace sinkstate
