//===- CompactLowering.cpp - compaction of one state -----------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "CompactLowering.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

LogicalResult CompactLowering::run() {
  allocate();
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
  if (t.shape.channelDecay)
    foldChannelDecay();
  else
    foldScalarDecay();
  k.note("active components: the largest weights");
  k.topK(weights, t.rank, order);
  gatherActive();
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

void CompactLowering::foldChannelDecay() {
  k.note("fold the decays into the rows' keys, their lengths into the weights");
  Type tile = t.keyTile();
  Value factor =
      k.map(tile, logDecay, [&](ValueRange e) { return k.exp(e[0]); });
  k.loop(k.index(0), t.rank, 1, [&](Value i) {
    Value at = t.row(i, 0);
    Value v = k.load(tile, t.arguments["rows"], at);
    v = k.map(tile, {v, factor},
              [&](ValueRange e) { return k.mul(e[0], e[1]); });
    Value length = k.name("length", k.sqrt(k.dot(v, v)));
    // A length of zero has no direction: the weight becomes zero and the
    // component is dropped by truncate. NaN stays NaN.
    Value isZero = k.equal(length, k.real(0));
    Value inverse =
        k.name("inverse",
               k.select(isZero, k.real(0), k.div(k.real(1), length)));
    v = k.map(tile, v, [&](ValueRange e) { return k.mul(e[0], inverse); });
    k.store(v, t.arguments["rows"], at);
    Value w = k.read(t.arguments["weights"], k.add(t.base, i));
    k.write(k.mul(w, length), weights, i);
  });
}

void CompactLowering::zeroBlockRow(Value row) {
  const LayerShape &s = t.shape;
  Value zero = k.index(0);
  k.store(k.splat(k.lanes({s.dv}), k.real(0)), left.rows, {row, zero});
  k.store(k.splat(k.lanes({s.dk}), k.real(0)), right.rows, {row, zero});
  k.write(k.extend(k.real(0)), blockWeights, row);
}

void CompactLowering::gatherActive() {
  const LayerShape &s = t.shape;
  Value zero = k.index(0);
  k.loop(zero, k.index(s.active), 1, [&](Value i) {
    Value source = k.name("source", k.toIndex(k.read(order, i)));
    k.branch(
        k.less(source, k.index(0)), [&] { zeroBlockRow(i); },
        [&] {
          Value v = k.load(k.lanes({s.dk}), t.arguments["rows"],
                           t.row(source, 0));
          Value u = k.load(k.lanes({s.dv}), t.arguments["rows"],
                           t.row(source, s.dk));
          k.store(v, right.rows, {i, zero});
          k.store(u, left.rows, {i, zero});
          k.write(k.extend(k.read(weights, source)), blockWeights, i);
        });
  });
}

void CompactLowering::concat() {
  k.note("buffered pairs behind the active components");
  const LayerShape &s = t.shape;
  k.loop(k.index(0), k.index(s.capacity), 1, [&](Value j) {
    Value row = k.name("row", k.add(j, k.index(s.active)));
    k.branch(
        k.less(j, t.count), [&] { foldPair(j, row); },
        [&] { zeroBlockRow(row); });
  });
}

void CompactLowering::foldPair(Value j, Value row) {
  const LayerShape &s = t.shape;
  Value zero = k.index(0);
  Value u = k.load(k.lanes({s.dv}), t.arguments["buffer_u"], t.bufferU(j));
  Value key = k.load(k.lanes({s.dk}), t.arguments["buffer_k"], t.bufferK(j));
  Value weight;
  if (s.channelDecay) {
    Value g = k.load(t.keyTile(), t.arguments["buffer_g"], t.bufferG(j));
    key = k.map(t.keyTile(), {key, g, logDecay}, [&](ValueRange e) {
      return k.mul(e[0], k.exp(k.sub(e[2], e[1])));
    });
    weight = k.real(1);
  } else {
    Value g = k.read(t.arguments["buffer_g"], t.bufferG(j));
    weight = k.exp(k.sub(logDecay, g));
  }
  k.store(u, left.rows, {row, zero});
  k.store(key, right.rows, {row, zero});
  k.write(k.extend(weight), blockWeights, row);
}

} // namespace sinkstate
