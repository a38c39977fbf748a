//===- CompactLowering.cpp - compaction of one state -----------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "CompactLowering.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <algorithm>

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

LogicalResult CompactLowering::run() {
  allocate();
  if (t.shape.sink)
    findSink();
  for (Operation &op : fused.getBody().front().without_terminator()) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case<ss::SplitOp>([&](auto) { return split(), success(); })
            .Case<ss::ConcatOp>([&](auto) { return concat(), success(); })
            .Case<ss::OrthogonalizeOp>(
                [&](auto) { return orthogonalize(), success(); })
            .Case<ss::CoreOp>([&](auto) { return core(), success(); })
            .Case<ss::CoreSvdOp>([&](auto) { return coreSvd(), success(); })
            .Case<ss::RotateOp>([&](auto) { return rotate(), success(); })
            .Case<ss::OrthogonalizeSideOp>([&](ss::OrthogonalizeSideOp side) {
              return orthogonalizeSide(side);
            })
            .Case<ss::MergeOp>([&](ss::MergeOp op) { return merge(op); })
            .Case<ss::TruncateOp>(
                [&](ss::TruncateOp trunc) { return truncate(trunc.getPolicy()); })
            .Default([](Operation *other) {
              return other->emitOpError("has no lowering inside a compaction");
            });
    if (failed(result))
      return failure();
  }
  return success();
}

void CompactLowering::askAhead() {
  if (next && shares < NextState::kShares)
    next->wantShare(shares++);
}

void CompactLowering::allocate() {
  const LayerShape &s = t.shape;
  weights = k.name("weights", k.shared({s.rankBound}, k.f32()));
  order = k.name("order", k.shared({s.active}, k.i32()));
  for (BlockSide *side : {&left, &right})
    side->rows = k.name(side->name, k.shared({m, side->columns}, k.f32()));
  blockWeights = k.name("block_weights", k.shared({m}, k.f64()));
  sigma = k.name("sigma", k.shared({m}, k.f64()));
  newWeights = k.name("new_weights", k.shared({m}, k.f32()));
  status = k.name("status", k.shared({1}, k.i32()));
  k.write(k.integer(0), status, k.index(0));
}

//===----------------------------------------------------------------------===//
// split and concat
//===----------------------------------------------------------------------===//

void CompactLowering::split() {
  logDecay = t.runningDecay();
  // The buffered keys come from memory while rows decay.
  if (t.shape.channelDecay && keysInFlight() == t.shape.capacity)
    firstKeys = loadKeys(k.index(0));
  // What takes part in the block is rounded once, when it is stored again: rows
  // of 16 and 8 bits are folded in place when the active ones have been read.
  const bool rounds = t.shape.channelDecay && t.shape.isNarrow();
  if (rounds)
    weighDecayedRows();
  else if (t.shape.channelDecay)
    foldChannelDecay();
  else
    foldScalarDecay();
  k.note("active components: the largest weights");
  k.topK(weights, t.rank, order);
  gatherActive();
  if (rounds)
    foldWeighedRows();
}

/// Rows that are only scaled, whose registers are free for more of them; a block
/// beyond 16 components leaves none. A state may have room for fewer.
int64_t CompactLowering::manyRows() const {
  const int64_t rows =
      rowsInFlight > 1 && m <= 16 ? 2 * rowsInFlight : rowsInFlight;
  return std::min<int64_t>(rows, llvm::bit_floor<uint64_t>(t.shape.rankBound));
}

Value CompactLowering::groupStride() const {
  return manyRows() > 1 ? k.index(t.shape.rowLength()) : Value();
}

void CompactLowering::foldScalarDecay() {
  k.note("fold the decay into the weights");
  Value factor = k.name("decay", k.exp(logDecay));
  overWeights(t.shape.rankBound, t.rank, [&](Type tile, Value i, Value limit) {
    Value w = k.load(tile, t.arguments["weights"], k.add(t.base, i), Value(),
                     limit);
    w = k.map(tile, w, [&](ValueRange e) { return k.mul(e[0], factor); });
    k.store(w, weights, i, Value(), limit);
  });
}

void CompactLowering::overWeights(
    int64_t bound, Value count,
    llvm::function_ref<void(Type, Value, Value)> body) {
  int64_t chunk = std::min<int64_t>(32, bound);
  Type tile = k.lanes({chunk});
  k.loop(k.index(0), count, chunk,
         [&](Value i) { body(tile, i, k.name("left", k.sub(count, i))); });
}

/// Keys of rows times their decays.
Value CompactLowering::decayedKeys(Value v, Value factor) {
  auto multiply = [&](ValueRange e) { return k.mul(e[0], e[1]); };
  auto tile = cast<ssk::TileType>(v.getType());
  return tile.getShape().size() == 1
             ? k.map(tile, {v, factor}, multiply)
             : k.map(tile, {v, factor}, {{0, 1}, {1}}, multiply);
}

/// Rows times the inverses of their lengths: a tile, or of one row a scalar.
Value CompactLowering::scaledRows(Value v, Value inverse) {
  if (!isa<ssk::TileType>(inverse.getType()))
    return k.map(v.getType(), v,
                 [&](ValueRange e) { return k.mul(e[0], inverse); });
  return k.map(v.getType(), {v, inverse}, {{0, 1}, {0}},
               [&](ValueRange e) { return k.mul(e[0], e[1]); });
}

Value CompactLowering::channelFactor() {
  return k.map(t.keyTile(), logDecay,
               [&](ValueRange e) { return k.exp(e[0]); });
}

/// The weights of decayed rows, which take their lengths, to scratch; returns
/// the inverses of the lengths. A length of zero has no direction: the weight
/// becomes zero and the component is dropped by truncate. NaN stays NaN.
Value CompactLowering::weighRows(Value v, Value w, Value i, Value limit) {
  auto tile = cast<ssk::TileType>(v.getType());
  const bool isOne = tile.getShape().size() == 1;
  Value squares =
      k.map(tile, v, [&](ValueRange e) { return k.mul(e[0], e[0]); });
  Value sum = k.reduceAdd(squares, isOne ? 0 : 1);
  auto inverseOf = [&](Value length) {
    return k.select(k.equal(length, k.real(0)), k.real(0),
                    k.div(k.real(1), length));
  };
  if (isOne) {
    Value length = k.name("length", k.sqrt(sum));
    Value inverse = k.name("inverse", inverseOf(length));
    k.write(k.mul(w, length), weights, i);
    if (inverses)
      k.write(inverse, inverses, i);
    return inverse;
  }
  // A root and a quotient in every lane for every row would be a dozen
  // instructions and a branch each: a lane takes one row's.
  const int64_t n = tile.getShape()[0];
  Type perLane = k.lanes({n});
  Value memory = inverses ? inverses : inversesOfGroup;
  Value at = inverses ? i : k.index(0);
  k.store(sum, memory, at);
  Value length = k.name("length", k.map(perLane, k.load(perLane, memory, at),
                                        [&](ValueRange e) { return k.sqrt(e[0]); }));
  k.store(k.map(perLane, length, [&](ValueRange e) { return inverseOf(e[0]); }),
          memory, at);
  k.store(k.map(perLane, {w, length},
                [&](ValueRange e) { return k.mul(e[0], e[1]); }),
          weights, i, Value(), limit);
  return inverses ? Value() : k.load(k.replicated({n}), memory, at);
}

void CompactLowering::overKeys(
    llvm::function_ref<void(Value v, Value i, Value limit)> body) {
  const LayerShape &s = t.shape;
  const int64_t n = manyRows();
  Value factor = channelFactor(), rows = t.arguments["rows"];
  k.loop(k.index(0), t.rank, n, [&](Value i) {
    Value limit = n == 1 ? Value() : k.name("left", k.sub(t.rank, i));
    Type tile = n == 1 ? t.keyTile() : k.lanes({n, s.dk});
    Value v = k.load(tile, rows, t.row(i, 0), groupStride(), limit);
    body(decayedKeys(v, factor), i, limit);
  });
}

/// Rows of 32 bits: read and written once.
void CompactLowering::foldChannelDecay() {
  k.note("fold the decays into the rows' keys, their lengths into the weights");
  if (manyRows() > 1)
    inversesOfGroup =
        k.name("inverses_of_group", k.shared({manyRows()}, k.f32()));
  Value stride = groupStride();
  overKeys([&](Value v, Value i, Value limit) {
    Value inverse = weighRows(v, storedWeights(i, limit), i, limit);
    t.storeRow(scaledRows(v, inverse), i, 0, stride, limit);
  });
}

Value CompactLowering::storedWeights(Value i, Value limit) {
  Value memory = t.arguments["weights"], at = k.add(t.base, i);
  return limit ? k.load(k.lanes({manyRows()}), memory, at, Value(), limit)
               : k.read(memory, at);
}

void CompactLowering::weighDecayedRows() {
  k.note("the weights that decayed rows have");
  // The last group is whole there.
  const int64_t n = manyRows();
  inverses = k.name("inverses", k.shared({(t.shape.rankBound + n - 1) / n * n}, k.f32()));
  overKeys([&](Value v, Value i, Value limit) {
    weighRows(v, storedWeights(i, limit), i, limit);
  });
}

/// Rows of 16 and 8 bits, whose lengths are known by now.
void CompactLowering::foldWeighedRows() {
  k.note("fold the decays into the rows' keys");
  Value stride = groupStride();
  overKeys([&](Value v, Value i, Value limit) {
    Value inverse =
        limit ? k.load(k.replicated({manyRows()}), inverses, i)
              : k.read(inverses, i);
    t.storeRow(scaledRows(v, inverse), i, 0, stride, limit);
  });
}

void CompactLowering::gatherActive() {
  const LayerShape &s = t.shape;
  Value zero = k.index(0), rows = t.arguments["rows"];
  // Places and weights of a few rows are read before the first is copied.
  struct Source {
    Value to, from, isThere, weight;
  };
  int64_t n = largestDivisor(s.active, rowsInFlight);
  k.loop(zero, k.index(s.active), n, [&](Value first) {
    SmallVector<Source> sources;
    for (int64_t r = 0; r < n; ++r) {
      Value to = r == 0 ? first : k.add(first, k.index(r));
      Value source = k.toIndex(k.read(order, to));
      Value isThere = k.name("is_there", k.atLeast(source, zero));
      source = k.name("source", k.select(isThere, source, zero));
      sources.push_back({to, source, isThere, k.read(weights, source)});
    }
    for (const Source &row : sources) {
      auto length = [&](int64_t size) {
        return k.select(row.isThere, k.index(size), zero);
      };
      if (!s.isNarrow()) {
        k.copy(rows, t.row(row.from, 0), right.rows, row.to, length(s.dk));
        k.copy(rows, t.row(row.from, s.dk), left.rows, row.to, length(s.dv));
      }
      Value weight = k.select(row.isThere, row.weight, k.real(0));
      k.write(k.extend(weight), blockWeights, row.to);
    }
  });
  if (s.isNarrow())
    widenActive();
}

/// Rows that are converted pass through registers, a few at a time so that their
/// loads overlap; those of a layer with channel decays decay on the way. Several
/// loads overlap only if none is under a condition: an absent row is read as the
/// first one, where there is one.
void CompactLowering::widenActive() {
  const LayerShape &s = t.shape;
  Value zero = k.index(0);
  if (rowsInFlight == 1)
    return widenRows();
  k.branch(
      k.less(zero, t.rank), [&] { widenRows(); },
      [&] {
        k.loop(zero, k.index(s.active), 1, [&](Value to) {
          k.store(k.splat(k.lanes({s.dk}), k.real(0)), right.rows, {to, zero});
          k.store(k.splat(k.lanes({s.dv}), k.real(0)), left.rows, {to, zero});
        });
      });
}

void CompactLowering::widenRows() {
  const LayerShape &s = t.shape;
  Value zero = k.index(0), rows = t.arguments["rows"];
  int64_t n = largestDivisor(s.active, rowsInFlight);
  Type keys = k.lanes({s.dk}), values = k.lanes({s.dv});
  Value factor = s.channelDecay ? channelFactor() : Value();
  k.loop(zero, k.index(s.active), n, [&](Value first) {
    struct Widened {
      Value to, isThere, v, u, inverse;
    };
    SmallVector<Widened> widened;
    for (int64_t r = 0; r < n; ++r) {
      Value to = r == 0 ? first : k.add(first, k.index(r));
      Value source = k.toIndex(k.read(order, to));
      Value isThere = k.atLeast(source, zero);
      source = k.name("source", k.select(isThere, source, zero));
      auto load = [&](Type tile, int64_t column, int64_t size) {
        Value length = rowsInFlight == 1
                           ? k.select(isThere, k.index(size), zero)
                           : Value();
        return k.load(tile, rows, t.row(source, column), Value(), length);
      };
      // What scratch has for an absent row may be anything.
      Value inverse = factor ? k.select(isThere, k.read(inverses, source), k.real(0))
                             : Value();
      widened.push_back({to, isThere, load(keys, 0, s.dk),
                         load(values, s.dk, s.dv), inverse});
    }
    for (Widened &row : widened) {
      auto orZero = [&](Value tile) {
        if (rowsInFlight == 1)
          return tile;
        return k.map(tile.getType(), tile, [&](ValueRange e) {
          return k.select(row.isThere, e[0], k.real(0));
        });
      };
      Value v = orZero(row.v);
      if (factor)
        v = scaledRows(decayedKeys(v, factor), row.inverse);
      k.store(v, right.rows, {row.to, zero});
      k.store(orZero(row.u), left.rows, {row.to, zero});
    }
  });
}

void CompactLowering::concat() {
  k.note("buffered pairs behind the active components");
  const LayerShape &s = t.shape;
  Value zero = k.index(0);
  k.loop(zero, k.index(s.capacity), 1, [&](Value j) {
    Value row = k.name("row", k.add(j, k.index(s.active)));
    Value isThere = k.name("is_there", k.less(j, t.count));
    auto length = [&](int64_t size) {
      return k.select(isThere, k.index(size), zero);
    };
    k.copy(t.arguments["buffer_u"], t.bufferU(j), left.rows, row,
           length(s.dv));
    if (!s.channelDecay)
      k.copy(t.arguments["buffer_k"], t.bufferK(j), right.rows, row,
             length(s.dk));
  });
  if (s.channelDecay)
    foldKeys();
  weighPairs();
  k.waitCopies();
  if (t.shape.sink)
    separateSink();
}

int64_t CompactLowering::keysInFlight() const {
  return largestDivisor(t.shape.capacity, manyRows());
}

CompactLowering::DecayedKeys CompactLowering::loadKeys(Value j) {
  Type tile = k.lanes({keysInFlight(), t.shape.dk});
  Value stride = k.index(t.shape.dk), zero = k.index(0);
  Value isThere = k.less(j, t.count);
  Value limit = k.name("left", k.select(isThere, k.sub(t.count, j), zero));
  return {k.load(tile, t.arguments["buffer_k"], t.bufferK(j), stride, limit),
          k.load(tile, t.arguments["buffer_g"], t.bufferG(j), stride, limit)};
}

/// The keys of the pairs of a layer with channel decays, with what they lost
/// since.
void CompactLowering::foldKeys() {
  const LayerShape &s = t.shape;
  Type tile = k.lanes({keysInFlight(), s.dk});
  auto fold = [&](Value j, DecayedKeys keys) {
    // A map of its own: inside the select it would be a branch for every element.
    Value factor = k.map(tile, {keys.decays, logDecay}, {{0, 1}, {1}}, [&](ValueRange e) {
      return k.exp(k.sub(e[1], e[0]));
    });
    Value key = k.map(tile, {keys.keys, factor}, [&](ValueRange e) {
      // An absent pair's key is zero, whatever its decay.
      Value isZero = k.equal(e[0], k.real(0));
      return k.select(isZero, k.real(0), k.mul(e[0], e[1]));
    });
    Value row = k.name("row", k.add(j, k.index(s.active)));
    k.store(key, right.rows, {row, k.index(0)});
  };
  if (firstKeys.keys)
    fold(k.index(0), firstKeys);
  else
    k.loop(k.index(0), k.index(s.capacity), keysInFlight(),
           [&](Value j) { fold(j, loadKeys(j)); });
}

/// The weights of the pairs: a scalar decay, or 1 where it is in the keys; 0 of
/// absent ones.
void CompactLowering::weighPairs() {
  const LayerShape &s = t.shape;
  Type tile = k.lanes({s.capacity}), wide = k.lanes({s.capacity}, k.f64());
  Value first = k.index(s.active);
  k.store(k.splat(wide, k.wide(0)), blockWeights, first);
  Value factor = k.splat(wide, k.wide(1));
  if (!s.channelDecay) {
    Value g = k.load(tile, t.arguments["buffer_g"], t.bufferG(k.index(0)),
                     Value(), t.count);
    factor = k.map(wide, g, [&](ValueRange e) {
      return k.extend(k.exp(k.sub(logDecay, e[0])));
    });
  }
  k.store(factor, blockWeights, first, Value(), t.count);
}

} // namespace sinkstate
