//===- DecodeLowering.cpp - decode of factored states ---------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// decay, append and readout of one fused region become one kernel that reads
// every row once. The products H k and H q that append and readout need are
// collected first and computed by one RowPass; what append adds is applied to
// the readout as u (k . q) without reading anything again.
//
//===----------------------------------------------------------------------===//
#include "Lowerings.h"
#include "RowPass.h"
#include "TokenLowering.h"

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

namespace {
/// The state after some of the region's operations, relative to memory.
struct StateView {
  Value logDecay; ///< running log-decay, null before the decay
  Value appendedKey, appendedValue; ///< null when nothing was appended
};

class DecodeLowering {
public:
  DecodeLowering(ss::FusedOp fused, StateTables &tables, TokenLowering &token,
                 const KernelChoices &choices, NextState *next)
      : fused(fused), t(tables), k(tables.k), token(token), choices(choices),
        next(next) {}

  LogicalResult run();

private:
  LogicalResult collectProducts();
  LogicalResult lowerDecay(ss::DecayOp op);
  LogicalResult lowerAppend(ss::AppendOp op);
  LogicalResult lowerReadout(ss::ReadoutOp op);
  void storePair(Value key, Value u, Value logDecay);

  ss::FusedOp fused;
  StateTables &t;
  KernelBuilder &k;
  TokenLowering &token;
  const KernelChoices &choices;
  NextState *next; ///< null: nothing is asked for ahead
  llvm::DenseMap<Value, StateView> views;
  llvm::DenseMap<Value, Value> products; ///< vector of the graph -> tile [dv]
  Value outputOffset;
};
} // namespace

LogicalResult DecodeLowering::run() {
  Block &body = fused.getBody().front();
  views[body.getArgument(0)] = StateView();
  outputOffset = token.offset("y", t.head, t.shape.dv);

  for (Operation &op : body.without_terminator()) {
    if (token.lower(&op))
      continue;
    if (auto fold = dyn_cast<ss::FoldOp>(op))
      views[fold.getResult()] = views.lookup(fold.getState());
    if (auto decay = dyn_cast<ss::DecayOp>(op)) {
      if (failed(lowerDecay(decay)))
        return failure();
    }
  }
  if (failed(collectProducts()))
    return failure();
  for (Operation &op : body.without_terminator()) {
    if (auto append = dyn_cast<ss::AppendOp>(op)) {
      if (failed(lowerAppend(append)))
        return failure();
    } else if (auto readout = dyn_cast<ss::ReadoutOp>(op)) {
      if (failed(lowerReadout(readout)))
        return failure();
    }
  }
  return success();
}

LogicalResult DecodeLowering::lowerDecay(ss::DecayOp op) {
  auto it = views.find(op.getState());
  if (it == views.end())
    return op.emitOpError("follows an append in the same kernel; a decode "
                          "kernel takes one decay before its append");
  k.note("running log-decay");
  Value before = t.runningDecay();
  Value g = t.shape.channelDecay ? token.vector(op.getLogDecay())
                                 : token.scalar(op.getLogDecay());
  StateView view;
  view.logDecay = k.name(
      "running_decay", t.shape.channelDecay
                           ? k.map(t.keyTile(), {before, g},
                                   [&](ValueRange e) {
                                     return k.add(e[0], e[1]);
                                   })
                           : k.add(before, g));
  views[op.getResult()] = view;
  return success();
}

LogicalResult DecodeLowering::collectProducts() {
  SmallVector<Value> wanted;
  SmallVector<StringRef> names;
  Value logDecay;
  for (Operation &op : fused.getBody().front().without_terminator()) {
    if (auto decay = dyn_cast<ss::DecayOp>(op))
      logDecay = views.lookup(decay.getResult()).logDecay;
    if (auto append = dyn_cast<ss::AppendOp>(op); append && t.shape.delta) {
      wanted.push_back(append.getKey());
      names.push_back("h_k");
    } else if (auto readout = dyn_cast<ss::ReadoutOp>(op)) {
      wanted.push_back(readout.getQuery());
      names.push_back("h_q");
    }
  }
  if (!logDecay)
    return fused.emitOpError("has no ss.decay; every decode step decays");
  Values vectors;
  for (Value x : wanted)
    vectors.push_back(token.vector(x));
  Values sums;
  if (t.shape.isDeferred())
    sums = k.choose(
        t.isFull, [&] { return foldAndMultiply(t, choices, vectors, logDecay); },
        [&] {
          return RowPass(t, choices.rowsInFlight).run(vectors, names, logDecay);
        });
  else
    sums = RowPass(t, choices.rowsInFlight, choices.parts, next)
               .run(vectors, names, logDecay);
  for (auto [x, sum] : llvm::zip_equal(wanted, sums))
    products[x] = sum;
  return success();
}

LogicalResult DecodeLowering::lowerAppend(ss::AppendOp op) {
  StateView view = views.lookup(op.getState());
  if (!view.logDecay || view.appendedKey)
    return op.emitOpError("must be the only append of its kernel and follow "
                          "the decay");
  Value key = token.vector(op.getKey());
  Value value = token.vector(op.getValue());
  Value weight = token.scalar(op.getWeight());
  Value u;
  if (t.shape.delta) {
    k.note("delta correction: u = w (v - H k)");
    u = k.map(t.valueTile(), {value, products.lookup(op.getKey())},
              [&](ValueRange e) { return k.mul(weight, k.sub(e[0], e[1])); });
    k.name("u", u);
  } else {
    k.note("new pair: u = w v");
    u = k.map(t.valueTile(), value,
              [&](ValueRange e) { return k.mul(weight, e[0]); });
    k.name("u", u);
  }
  storePair(key, u, view.logDecay);
  view.appendedKey = key;
  view.appendedValue = u;
  views[op.getResult()] = view;
  return success();
}

void DecodeLowering::storePair(Value key, Value u, Value logDecay) {
  k.note("append to the buffer");
  Value j = t.count;
  k.store(u, t.arguments["buffer_u"], t.bufferU(j));
  if (t.shape.channelDecay)
    k.store(logDecay, t.arguments["buffer_g"], t.bufferG(j));
  else
    k.write(logDecay, t.arguments["buffer_g"], t.bufferG(j));
  auto storeKey = [&] { k.store(key, t.arguments["buffer_k"], t.bufferK(j)); };
  if (t.shape.group() == 1)
    return storeKey();
  // The first head of a group writes the key that all of them share.
  Value first = k.equal(k.rem(t.head, k.index(t.shape.group())), k.index(0));
  k.branch(first, storeKey);
}

LogicalResult DecodeLowering::lowerReadout(ss::ReadoutOp op) {
  StateView view = views.lookup(op.getState());
  Value y = products.lookup(op.getQuery());
  if (view.appendedKey) {
    k.note("readout: y = H q + u (k . q)");
    Value overlap = k.name(
        "k_q", k.dot(view.appendedKey, token.vector(op.getQuery())));
    y = k.map(t.valueTile(), {y, view.appendedValue}, [&](ValueRange e) {
      return k.fma(e[1], overlap, e[0]);
    });
    k.name("output", y);
  }
  k.store(y, t.arguments["y"], outputOffset);
  return success();
}

/// Names the region's arguments by the function's: state first, then the
/// inputs in the order that ss-expand-layers gives them.
static LogicalResult bindInputs(ss::FusedOp fused, const LayerShape &shape,
                                TokenLowering &token) {
  SmallVector<StringRef> names = {"", "q", "k", "v", "gate"};
  if (shape.hasBeta)
    names.push_back("beta");
  names.append({"a_log", "dt_bias"});
  for (auto [operand, argument] :
       llvm::zip_equal(fused.getOperands(),
                       fused.getBody().front().getArguments())) {
    auto outer = dyn_cast<BlockArgument>(operand);
    if (!outer || outer.getArgNumber() >= names.size())
      return fused.emitOpError("takes a value that is not an argument of the "
                               "decode function; run ss-fuse-decode first");
    if (outer.getArgNumber() > 0)
      token.bind(argument, names[outer.getArgNumber()]);
  }
  return success();
}

/// Which pair of batch row and head the program takes: its own number, or where
/// the caller has an order, in which the states with the most rows begin first,
/// what that says. Programs know nothing of each other, so no bit depends on it.
static Value programOf(Value own, const LayerShape &shape,
                       const KernelArguments &arguments, KernelBuilder &k) {
  if (!shape.isFactored())
    return own;
  Value ordered = k.less(k.index(0), k.toIndex(arguments["ordered"]));
  return k.name("place", k.choose(
                             ordered,
                             [&]() -> Values {
                               return {k.toIndex(k.read(arguments["order"], own))};
                             },
                             [&]() -> Values { return {own}; })[0]);
}

/// Addresses the program's batch row and head; a padded row writes zeros and
/// touches nothing else.
static LogicalResult
forEachRow(ss::FusedOp fused, const LayerShape &shape,
           const KernelArguments &arguments, KernelBuilder &k,
           llvm::function_ref<LogicalResult(StateTables &, TokenLowering &)>
               body) {
  Value program = programOf(k.programId(), shape, arguments, k);
  Value heads = k.index(shape.heads);
  Value batchRow = k.name("batch_row", k.div(program, heads));
  Value head = k.name("head", k.rem(program, heads));
  Value slot =
      k.name("slot", k.toIndex(k.read(arguments["slots"], batchRow)));
  LogicalResult result = success();
  k.branch(
      k.less(slot, k.index(0)),
      [&] {
        k.note("padded row: zero output, nothing touched");
        StateTables tables(k, shape, arguments);
        tables.locate(k.index(0), head);
        TokenLowering token(tables, batchRow);
        k.store(k.splat(tables.valueTile(), k.real(0)), arguments["y"],
                token.offset("y", head, shape.dv));
      },
      [&] {
        StateTables tables(k, shape, arguments);
        tables.locate(slot, head);
        TokenLowering token(tables, batchRow);
        result = bindInputs(fused, shape, token);
        if (succeeded(result))
          result = body(tables, token);
      });
  return result;
}

LogicalResult lowerDecode(ss::FusedOp fused, const LayerShape &shape,
                          const KernelArguments &arguments,
                          const KernelChoices &choices, KernelBuilder &k) {
  return forEachRow(fused, shape, arguments, k,
                    [&](StateTables &tables, TokenLowering &token) {
                      if (shape.isDeferred())
                        tables.readPairs();
                      else
                        tables.readExtent();
                      std::optional<NextState> next;
                      if (choices.asksAhead && shape.isFactored())
                        next.emplace(k, shape, arguments,
                                     programOf(k.nextProgram(), shape,
                                               arguments, k));
                      return DecodeLowering(fused, tables, token, choices,
                                            next ? &*next : nullptr)
                          .run();
                    });
}

LogicalResult lowerDenseDecode(ss::FusedOp fused, const LayerShape &shape,
                               const KernelArguments &arguments,
                               const KernelChoices &choices,
                               KernelBuilder &k) {
  return forEachRow(
      fused, shape, arguments, k,
      [&](StateTables &t, TokenLowering &token) -> LogicalResult {
        Operation *decay = nullptr, *append = nullptr, *readout = nullptr;
        for (Operation &op : fused.getBody().front().without_terminator()) {
          if (token.lower(&op))
            continue;
          if (isa<ss::DecayOp>(op))
            decay = &op;
          else if (isa<ss::AppendOp>(op))
            append = &op;
          else if (isa<ss::ReadoutOp>(op))
            readout = &op;
        }
        if (!decay || !append || !readout)
          return fused.emitOpError("must decay, append and read a dense state");
        Value g = cast<ss::DecayOp>(decay).getLogDecay();
        auto appendOp = cast<ss::AppendOp>(append);
        Value key = token.vector(appendOp.getKey());
        Value query = token.vector(cast<ss::ReadoutOp>(readout).getQuery());
        Value weight = token.scalar(appendOp.getWeight());
        Value alpha =
            shape.channelDecay
                ? k.map(t.keyTile(), token.vector(g),
                        [&](ValueRange e) { return k.exp(e[0]); })
                : k.exp(token.scalar(g));
        k.name("decay", alpha);

        t.readRounding();
        int64_t n = largestDivisor(shape.dv, choices.rowsInFlight);
        Type rows = k.lanes({n, shape.dk}), column = k.replicated({n});
        Value matrix =
            k.name("matrix_at", k.mul(t.state, k.index(shape.dv * shape.dk)));
        Value vOffset = token.offset("v", t.head, shape.dv);
        Value yOffset = token.offset("y", t.head, shape.dv);
        Value stride = k.index(shape.dk);
        k.loop(k.index(0), k.index(shape.dv), n, [&](Value i) {
          Value at = k.name("row_at",
                            k.add(matrix, k.mul(i, k.index(shape.dk))));
          k.note("decayed rows of H");
          Value h = k.load(rows, arguments["dense"], at, stride);
          h = shape.channelDecay
                  ? k.map(rows, {h, alpha}, {{0, 1}, {1}},
                          [&](ValueRange e) { return k.mul(e[0], e[1]); })
                  : k.map(rows, h,
                          [&](ValueRange e) { return k.mul(e[0], alpha); });
          k.name("decayed_rows", h);
          k.note("update and readout");
          Value v = k.load(column, arguments["v"], k.add(vOffset, i));
          Value u;
          if (shape.delta)
            u = k.map(column, {v, k.dot(h, key)}, [&](ValueRange e) {
              return k.mul(weight, k.sub(e[0], e[1]));
            });
          else
            u = k.map(column, v,
                      [&](ValueRange e) { return k.mul(weight, e[0]); });
          k.name("u", u);
          h = k.map(rows, {h, u, key}, {{0, 1}, {0}, {1}},
                    [&](ValueRange e) { return k.fma(e[1], e[2], e[0]); });
          k.name("new_rows", h);
          t.storeRounded(h, arguments["dense"], at, i, 0, stride);
          k.store(k.name("output", k.dot(h, query)), arguments["y"],
                  k.add(yOffset, i));
        });
        return success();
      });
}

} // namespace sinkstate
