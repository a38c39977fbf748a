//===- StateTables.cpp - where a program finds its state ------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "StateTables.h"
#include "dialect/ssk/SSKDialect.h"

using namespace mlir;

namespace sinkstate {

namespace {
/// Spells the argument types of a signature.
struct ArgumentTypes {
  ArgumentTypes(const LayerShape &shape, MLIRContext *context)
      : f32(Float32Type::get(context)), i32(IntegerType::get(context, 32)),
        i64(IntegerType::get(context, 64)),
        floats(ssk::GlobalType::get(context, f32)),
        ints(ssk::GlobalType::get(context, i32)),
        longs(ssk::GlobalType::get(context, i64)),
        stored(ssk::GlobalType::get(context, shape.storageType(context))) {}
  Type f32, i32, i64, floats, ints, longs;
  Type stored; ///< rows and dense states
};

/// What kernels that round stochastically take beside the rest.
void addRounding(SmallVectorImpl<KernelArguments::Argument> &signature,
                 const LayerShape &shape, const ArgumentTypes &t) {
  if (shape.stochastic)
    signature.append({{"positions", t.longs},
                      {"request_keys", t.longs},
                      {"layer", t.i32},
                      {"first_head", t.i32}});
}
} // namespace

SmallVector<KernelArguments::Argument>
KernelArguments::tables(const LayerShape &shape, MLIRContext *context) {
  ArgumentTypes t(shape, context);
  return {{"rows", t.stored},     {"weights", t.floats},
          {"row_base", t.longs},  {"rank", t.ints},
          {"status", t.ints},     {"count", t.ints},
          {"buffer_k", t.floats}, {"buffer_u", t.floats},
          {"buffer_g", t.floats}};
}

SmallVector<KernelArguments::Argument>
KernelArguments::decode(const LayerShape &shape, MLIRContext *context) {
  ArgumentTypes t(shape, context);
  SmallVector<Argument> signature;
  if (shape.isDense())
    signature.push_back({"dense", t.stored});
  else if (shape.isDeferred())
    signature = {{"dense", t.stored},
                 {"count", t.ints},
                 {"buffer_k", t.floats},
                 {"buffer_u", t.floats},
                 {"buffer_g", t.floats}};
  else
    signature = tables(shape, context);
  signature.push_back({"slots", t.ints});
  auto addInput = [&](StringRef name, StringRef stride) {
    signature.push_back({name, t.floats});
    signature.push_back({stride, t.i64});
  };
  addInput("q", "q_stride");
  addInput("k", "k_stride");
  addInput("v", "v_stride");
  addInput("gate", "gate_stride");
  if (shape.hasBeta)
    addInput("beta", "beta_stride");
  signature.push_back({"a_log", t.floats});
  signature.push_back({"dt_bias", t.floats});
  addInput("y", "y_stride");
  if (shape.isDense())
    addRounding(signature, shape, t);
  if (shape.isFactored())
    signature.append({{"order", t.ints}, {"ordered", t.i32}});
  return signature;
}

SmallVector<KernelArguments::Argument>
KernelArguments::compact(const LayerShape &shape, MLIRContext *context) {
  ArgumentTypes t(shape, context);
  SmallVector<Argument> signature = tables(shape, context);
  signature.append({{"work", t.ints},
                    {"work_count", t.ints},
                    {"count_ahead", t.i32},
                    {"policy_value", t.f32},
                    {"max_rank", t.i32},
                    {"row_capacity", t.ints}});
  if (shape.sink)
    signature.push_back({"sink", t.floats});
  addRounding(signature, shape, t);
  return signature;
}

SmallVector<KernelArguments::Argument>
KernelArguments::densify(const LayerShape &shape, MLIRContext *context) {
  ArgumentTypes t(shape, context);
  SmallVector<Argument> signature = tables(shape, context);
  signature.append({{"work", t.ints},
                    {"work_count", t.ints},
                    {"count_ahead", t.i32},
                    {"out", t.floats},
                    {"out_base", t.longs}});
  if (shape.mayBeDense())
    addRounding(signature, shape, t);
  return signature;
}

SmallVector<KernelArguments::Argument>
KernelArguments::init(const LayerShape &shape, MLIRContext *context) {
  ArgumentTypes t(shape, context);
  return {{"factors", t.floats},  {"weights", t.floats},
          {"row_base", t.longs},  {"rank", t.ints},
          {"status", t.ints},     {"work", t.ints},
          {"work_count", t.ints}, {"matrices", t.floats},
          {"matrix_base", t.longs}, {"policy_value", t.f32},
          {"max_rank", t.i32},    {"seed", t.i64}};
}

KernelArguments::KernelArguments(ArrayRef<Argument> signature,
                                 ValueRange blockArguments) {
  for (auto [argument, value] : llvm::zip_equal(signature, blockArguments))
    values[argument.name] = value;
}

Value KernelArguments::operator[](StringRef name) const {
  auto it = values.find(name);
  if (it == values.end())
    llvm::report_fatal_error(llvm::Twine("kernel has no argument '") + name +
                             "'");
  return it->second;
}

void StateTables::locate(Value inSlot, Value inHead) {
  slot = inSlot;
  head = inHead;
  state = k.name("state", k.add(k.mul(slot, k.index(shape.heads)), head));
  locateKeyHead();
}

void StateTables::locateState(Value inState) {
  state = inState;
  slot = k.name("slot", k.div(state, k.index(shape.heads)));
  head = k.name("head", k.rem(state, k.index(shape.heads)));
  locateKeyHead();
}

void StateTables::locateKeyHead() {
  keyHead = shape.group() == 1
                ? head
                : k.name("key_head", k.div(head, k.index(shape.group())));
}

void StateTables::readExtent(Value ahead) {
  rank = k.name("stored", k.toIndex(k.read(arguments["rank"], state)));
  isDense = k.name("is_dense", k.less(rank, k.index(0)));
  base = k.name("base", k.toIndex(k.read(arguments["row_base"], state)));
  Value pairs = k.read(arguments["count"], slot);
  count = k.name("pairs", k.toIndex(ahead ? k.add(pairs, ahead) : pairs));
}

void StateTables::readPairs() {
  // 0 to K: pairs in the first half; K + 1 to 2 K: K more than in the second.
  Value counted =
      k.name("counted", k.toIndex(k.read(arguments["count"], slot)));
  Value capacity = k.index(shape.capacity), zero = k.index(0);
  Value second = k.less(capacity, counted);
  fullHalf = k.name("key_half", k.select(second, capacity, zero));
  Value pairs = k.name("pairs", k.sub(counted, fullHalf));
  isFull = k.name("is_full", k.atLeast(pairs, capacity));
  count = k.name("pairs_left", k.select(isFull, zero, pairs));
  half = k.name("half",
                k.select(isFull, k.sub(capacity, fullHalf), fullHalf));
}

void StateTables::readRounding(Value ahead) {
  if (!shape.stochastic)
    return;
  k.note("what the random bits of rounding depend on");
  Value position = k.read(arguments["positions"], slot);
  if (ahead)
    position = k.add(position, k.toI64(k.toIndex(ahead)));
  // Its number in the whole model, whichever heads this engine has.
  Value modelHead =
      k.name("model_head", k.add(head, k.toIndex(arguments["first_head"])));
  roundingKey = k.name(
      "rounding_key",
      StochasticRounding::mixKey(k, k.read(arguments["request_keys"], slot),
                                 position, arguments["layer"],
                                 modelHead));
}

void StateTables::storeRounded(Value tile, Value memory, Value at, Value row,
                               int64_t column, Value stride, Value limit) {
  if (roundingKey)
    tile = StochasticRounding(k, shape.storage, roundingKey)
               .round(tile, row, column);
  k.store(tile, memory, at, stride, limit);
}

void StateTables::storeRow(Value tile, Value i, int64_t column, Value stride,
                           Value limit) {
  storeRounded(tile, arguments["rows"], row(i, column), i, column, stride,
               limit);
}

Value StateTables::row(Value i, int64_t column) {
  Value start =
      k.name("row_at", k.mul(k.name("row", k.add(base, i)),
                             k.index(shape.rowLength())));
  return column ? k.add(start, k.index(column)) : start;
}

Value StateTables::denseRow(Value c) {
  if (shape.isDeferred())
    return k.add(k.mul(state, k.index(shape.dk * shape.dv)),
                 k.mul(c, k.index(shape.dv)));
  return k.add(k.mul(base, k.index(shape.rowLength())),
               k.mul(c, k.index(shape.dv)));
}

Value StateTables::keyAt(Value pair) {
  Value keyState = k.add(k.mul(slot, k.index(shape.keyHeads)), keyHead);
  const int64_t rows = shape.isDeferred() ? 2 * shape.capacity : shape.capacity;
  return k.name("key_at", k.mul(k.add(k.mul(keyState, k.index(rows)), pair),
                                k.index(shape.dk)));
}

Value StateTables::bufferK(Value j) {
  return keyAt(shape.isDeferred() ? k.add(half, j) : j);
}

Value StateTables::fullBufferK(Value j) { return keyAt(k.add(fullHalf, j)); }

Value StateTables::bufferU(Value j) {
  return k.mul(
      k.name("pair", k.add(k.mul(state, k.index(shape.capacity)), j)),
      k.index(shape.dv));
}

Value StateTables::bufferG(Value j) {
  Value pair = k.add(k.mul(state, k.index(shape.capacity)), j);
  return shape.channelDecay ? k.mul(pair, k.index(shape.dk)) : pair;
}

Value StateTables::runningDecay() {
  Value ref = arguments["buffer_g"];
  Value hasPairs = k.less(k.index(0), count);
  Value last = k.sub(count, k.index(1));
  if (shape.channelDecay) {
    // An empty buffer is not read at all: its bytes may be anything.
    Value limit = k.select(hasPairs, k.index(shape.dk), k.index(0));
    Value at = k.select(hasPairs, bufferG(last), k.index(0));
    return k.name("decay_before", k.load(keyTile(), ref, at, {}, limit));
  }
  auto value = k.choose(
      hasPairs, [&] { return KernelBuilder::Values{k.read(ref, bufferG(last))}; },
      [&] { return KernelBuilder::Values{k.real(0)}; });
  return k.name("decay_before", value[0]);
}

void overWork(KernelBuilder &k, const KernelArguments &arguments,
              llvm::function_ref<void(Value program, Value state)> body) {
  Value program = k.programId();
  Value due = k.toIndex(k.read(arguments["work_count"], k.index(0)));
  k.branch(k.less(program, due), [&] {
    body(program, k.name("state", k.toIndex(k.read(arguments["work"], program))));
  });
}

} // namespace sinkstate
