//===- CompactLowering.cpp - local SVD of one state -----------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "CompactLowering.h"
#include "sinkstate/routines.h"
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
            .Case<ss::MergeOp>([&](auto) { return merge(), success(); })
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
  left = k.name("left", k.shared({m, s.dv}, k.f32()));
  right = k.name("right", k.shared({m, s.dk}, k.f32()));
  blockWeights = k.name("block_weights", k.shared({m}, k.f64()));
  tLeft = k.name("t_left", k.shared({m, m}, k.f64()));
  tRight = k.name("t_right", k.shared({m, m}, k.f64()));
  rLeft = k.name("r_left", k.shared({m, m}, k.f64()));
  rRight = k.name("r_right", k.shared({m, m}, k.f64()));
  gram = k.name("gram", k.shared({m, m}, k.f64()));
  work = k.name("work", k.shared({m, m}, k.f64()));
  coreMatrix = k.name("core", k.shared({m, m}, k.f64()));
  xt = k.name("xt", k.shared({m, m}, k.f64()));
  yt = k.name("yt", k.shared({m, m}, k.f64()));
  sigma = k.name("sigma", k.shared({m}, k.f64()));
  newLeft = k.name("new_left", k.shared({m, s.dv}, k.f32()));
  newRight = k.name("new_right", k.shared({m, s.dk}, k.f32()));
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
  k.store(k.splat(k.lanes({s.dv}), k.real(0)), left, {row, zero});
  k.store(k.splat(k.lanes({s.dk}), k.real(0)), right, {row, zero});
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
          k.store(v, right, {i, zero});
          k.store(u, left, {i, zero});
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
  k.store(u, left, {row, zero});
  k.store(key, right, {row, zero});
  k.write(k.extend(weight), blockWeights, row);
}

//===----------------------------------------------------------------------===//
// orthogonalize, core, core_svd, rotate
//===----------------------------------------------------------------------===//

void CompactLowering::copyMatrix(Value from, Value to, int64_t rows,
                                 int64_t columns, Type element) {
  Value zero = k.index(0);
  Type row = k.lanes({columns}, element);
  k.loop(zero, k.index(rows), 1, [&](Value i) {
    k.store(k.load(row, from, {i, zero}), to, {i, zero});
  });
}

void CompactLowering::addStatus(Value bits) {
  Value before = k.read(status, k.index(0));
  k.write(k.bitOr(before, bits), status, k.index(0));
}

void CompactLowering::orthogonalizeSide(Value side, int64_t columns,
                                        Value factor, Value r) {
  Value size = k.integer(m);
  k.matmul(side, side, gram, false, true);
  copyMatrix(gram, work, m, m, k.f64());
  Value bits = k.name(
      "bits", k.call("ss_orthogonalize", {size, work, factor}, {1}, {1, 2}));
  k.matmul(factor, gram, r, false, false); // R = T G
  addStatus(k.bitAnd(bits, k.integer(SS_STATUS_NOT_FINITE)));
  Value again = k.bitAnd(bits, k.integer(SS_STATUS_ILL_CONDITIONED));
  k.branch(k.less(k.integer(0), again), [&] {
    k.note("ill-conditioned: form Q and orthogonalise it once more");
    Value q = k.name("q", k.shared({m, columns}, k.f32()));
    k.matmul(factor, side, q, false, false);
    k.matmul(q, side, gram, false, true); // Q A^T
    k.matmul(q, q, work, false, true);
    Value bits2 = k.name(
        "bits", k.call("ss_orthogonalize", {size, work, factor}, {1}, {1, 2}));
    addStatus(k.bitAnd(bits2, k.integer(SS_STATUS_NOT_FINITE)));
    k.matmul(factor, gram, r, false, false);
    copyMatrix(q, side, m, columns, k.f32());
  });
}

void CompactLowering::orthogonalize() {
  k.note("orthogonalise the left side: Q = T A, R = T G, G = A A^T");
  orthogonalizeSide(left, t.shape.dv, tLeft, rLeft);
  k.note("orthogonalise the right side");
  orthogonalizeSide(right, t.shape.dk, tRight, rRight);
}

void CompactLowering::core() {
  k.note("core C = R_L diag(s) R_R^T");
  Value zero = k.index(0);
  Type row = k.lanes({m}, k.f64());
  Value s = k.load(row, blockWeights, zero);
  k.loop(zero, k.index(m), 1, [&](Value i) {
    Value scaled = k.map(row, {k.load(row, rLeft, {i, zero}), s},
                         [&](ValueRange e) { return k.mul(e[0], e[1]); });
    k.store(scaled, rLeft, {i, zero});
  });
  k.matmul(rLeft, rRight, coreMatrix, false, true);
}

void CompactLowering::coreSvd() {
  k.note("C = X diag(sigma) Y^T");
  Value bits = k.call("ss_core_svd",
                      {k.integer(m), coreMatrix, xt, sigma, yt}, {1},
                      {1, 2, 3, 4});
  addStatus(bits);
}

void CompactLowering::rotate() {
  k.note("rotated rows: U' = (X^T T_L) A_L, V' = (Y^T T_R) A_R");
  k.matmul(xt, tLeft, work, false, false);
  k.matmul(work, left, newLeft, false, false);
  k.matmul(yt, tRight, work, false, false);
  k.matmul(work, right, newRight, false, false);
  Value zero = k.index(0);
  Value wide = k.load(k.lanes({m}, k.f64()), sigma, zero);
  Value narrow = k.map(k.lanes({m}), wide,
                       [&](ValueRange e) { return k.narrow(e[0]); });
  k.store(narrow, newWeights, zero);
}

} // namespace sinkstate
