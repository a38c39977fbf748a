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
    foldChannelDecay();
}

/// Rows that are only scaled, whose registers are free for more of them; a state
/// may have room for fewer.
int64_t CompactLowering::manyRows() const {
  const int64_t rows = rowsInFlight > 1 ? 2 * rowsInFlight : 1;
  return std::min<int64_t>(rows, llvm::bit_floor<uint64_t>(t.shape.rankBound));
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

CompactLowering::DecayedRows
CompactLowering::decayedRows(Value v, Value factor) {
  auto tile = cast<ssk::TileType>(v.getType());
  const bool isOne = tile.getShape().size() == 1;
  DecayedRows rows;
  rows.v = isOne ? k.map(tile, {v, factor},
                         [&](ValueRange e) { return k.mul(e[0], e[1]); })
                 : k.map(tile, {v, factor}, {{0, 1}, {1}}, [&](ValueRange e) {
                     return k.mul(e[0], e[1]);
                   });
  Value squares =
      k.map(tile, rows.v, [&](ValueRange e) { return k.mul(e[0], e[0]); });
  Value sum = k.reduceAdd(squares, isOne ? 0 : 1);
  rows.length = k.name(
      "length", isOne ? k.sqrt(sum) : k.map(sum.getType(), sum, [&](ValueRange e) {
        return k.sqrt(e[0]);
      }));
  return rows;
}

/// Rows of unit length. A length of zero has no direction: the weight becomes
/// zero and the component is dropped by truncate. NaN stays NaN.
Value CompactLowering::unitRows(const DecayedRows &rows) {
  auto inverseOf = [&](Value length) {
    return k.select(k.equal(length, k.real(0)), k.real(0),
                    k.div(k.real(1), length));
  };
  Type tile = rows.v.getType();
  if (!isa<ssk::TileType>(rows.length.getType())) {
    Value inverse = inverseOf(rows.length);
    return k.map(tile, rows.v,
                 [&](ValueRange e) { return k.mul(e[0], inverse); });
  }
  Value inverse = k.map(rows.length.getType(), rows.length,
                        [&](ValueRange e) { return inverseOf(e[0]); });
  return k.map(tile, {rows.v, inverse}, {{0, 1}, {0}},
               [&](ValueRange e) { return k.mul(e[0], e[1]); });
}

Value CompactLowering::channelFactor() {
  return k.map(t.keyTile(), logDecay,
               [&](ValueRange e) { return k.exp(e[0]); });
}

void CompactLowering::overDecayedRows(
    bool weighs,
    llvm::function_ref<void(Value, Value, const DecayedRows &)> store) {
  const LayerShape &s = t.shape;
  int64_t n = manyRows();
  Type tile = k.lanes({n, s.dk}), numbers = k.replicated({n});
  Value stride = k.index(s.rowLength()), factor = channelFactor();
  k.loop(k.index(0), t.rank, n, [&](Value i) {
    Value limit = n == 1 ? Value() : k.name("left", k.sub(t.rank, i));
    Value v = k.load(tile, t.arguments["rows"], t.row(i, 0), stride, limit);
    Value w = weighs ? k.load(numbers, t.arguments["weights"], k.add(t.base, i),
                              Value(), limit)
                     : Value();
    const DecayedRows rows = decayedRows(v, factor);
    if (store)
      store(i, limit, rows);
    if (weighs)
      k.store(k.map(numbers, {w, rows.length},
                    [&](ValueRange e) { return k.mul(e[0], e[1]); }),
              weights, i, Value(), limit);
  });
}

void CompactLowering::weighDecayedRows() {
  k.note("the weights that decayed rows have");
  overDecayedRows(/*weighs=*/true, nullptr);
}

void CompactLowering::foldChannelDecay() {
  const bool isWeighed = t.shape.isNarrow();
  k.note(isWeighed
             ? "fold the decays into the rows' keys"
             : "fold the decays into the rows' keys, their lengths into the "
               "weights");
  Value stride = k.index(t.shape.rowLength());
  overDecayedRows(!isWeighed,
                  [&](Value i, Value limit, const DecayedRows &rows) {
                    t.storeRow(unitRows(rows), i, 0, stride, limit);
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
/// loads overlap; those of a layer with channel decays decay on the way.
void CompactLowering::widenActive() {
  const LayerShape &s = t.shape;
  Value zero = k.index(0), rows = t.arguments["rows"];
  int64_t n = largestDivisor(s.active, rowsInFlight);
  Type keys = k.lanes({s.dk}), values = k.lanes({s.dv});
  Value factor = s.channelDecay ? channelFactor() : Value();
  k.loop(zero, k.index(s.active), n, [&](Value first) {
    struct Widened {
      Value to, v, u;
    };
    SmallVector<Widened> widened;
    for (int64_t r = 0; r < n; ++r) {
      Value to = r == 0 ? first : k.add(first, k.index(r));
      Value source = k.toIndex(k.read(order, to));
      Value isThere = k.atLeast(source, zero);
      source = k.name("source", k.select(isThere, source, zero));
      auto load = [&](Type tile, int64_t column, int64_t size) {
        Value length = k.select(isThere, k.index(size), zero);
        return k.load(tile, rows, t.row(source, column), Value(), length);
      };
      widened.push_back({to, load(keys, 0, s.dk), load(values, s.dk, s.dv)});
    }
    for (Widened &row : widened) {
      Value v = factor ? unitRows(decayedRows(row.v, factor)) : row.v;
      k.store(v, right.rows, {row.to, zero});
      k.store(row.u, left.rows, {row.to, zero});
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

/// The keys of the pairs of a layer with channel decays, with what they lost
/// since.
void CompactLowering::foldKeys() {
  const LayerShape &s = t.shape;
  int64_t n = largestDivisor(s.capacity, manyRows());
  Type tile = k.lanes({n, s.dk});
  Value stride = k.index(s.dk);
  k.loop(k.index(0), k.index(s.capacity), n, [&](Value j) {
    Value isThere = k.less(j, t.count);
    Value limit = k.name("left", k.select(isThere, k.sub(t.count, j), k.index(0)));
    Value key = k.load(tile, t.arguments["buffer_k"], t.bufferK(j), stride, limit);
    Value g = k.load(tile, t.arguments["buffer_g"], t.bufferG(j), stride, limit);
    key = k.map(tile, {key, g, logDecay}, {{0, 1}, {0, 1}, {1}}, [&](ValueRange e) {
      // An absent pair's key is zero, whatever its decay.
      Value isZero = k.equal(e[0], k.real(0));
      return k.select(isZero, k.real(0), k.mul(e[0], k.exp(k.sub(e[2], e[1]))));
    });
    Value row = k.name("row", k.add(j, k.index(s.active)));
    k.store(key, right.rows, {row, k.index(0)});
  });
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
