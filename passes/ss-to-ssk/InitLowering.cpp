//===- InitLowering.cpp - a state from a dense matrix ---------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "Lowerings.h"
#include "sinkstate/routines.h"
#include <algorithm>
#include <limits>

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

namespace {

/// Components that are kept at most.
constexpr int64_t kBlockVectors = SS_INIT_BLOCK,
                  kMostVectors = SS_INIT_MOST_COMPONENTS;
/// Vectors of a matrix that are worked on at a time: its products are made from
/// chunks, so that it takes no scratch as a whole.
constexpr int64_t kChunk = 16;
/// Vectors are found in float32: smaller weights are its rounding.
constexpr double kLeastShare = 0x1p-16;

/// The SVD of one matrix A of n rows, its shorter side (docs/state-math.md
/// section 4). The Gram matrix A A^T in float64, which lies packed where its
/// vectors will, gives the vectors of that side; they times A are the other
/// side's, each as long as its weight. These are orthogonal up to what float32
/// and the end of the factorisation left in them, which is small: one step of
/// Gram-Schmidt, all of it at once, takes it out.
class Init {
public:
  Init(StateTables &tables, Value program)
      : t(tables), k(tables.k), s(tables.shape), program(program),
        isLeft(s.dv <= s.dk), n(std::min(s.dv, s.dk)), m(std::max(s.dv, s.dk)),
        width(largestDivisor(m, kChunk)), block(std::min(kBlockVectors, n)),
        most(std::min(kMostVectors, n) / block * block) {}

  void run();

private:
  Value arg(StringRef name) { return t.arguments[name]; }
  Type row(int64_t columns, Type element = {}) {
    return k.lanes({columns}, element);
  }
  /// Columns of a factor's row where the vectors of n, or m, elements lie.
  int64_t shortSide() const { return isLeft ? s.dk : 0; }
  int64_t longSide() const { return isLeft ? 0 : s.dk; }

  void allocate();
  void locate();
  void overChunks(llvm::function_ref<void(Value first)> body);
  void loadChunk(Value first, Value scale);
  void loadFound(Value first, Value kept);
  void storeFound(Value from, Value first, Value kept);
  Value multiplyOut();
  Value countLarge(Value share);
  Value powerOf(Value sigma, Value &unscale);
  void findOtherSide(Value kept, Value scale);
  void gramOfFound(Value kept);
  void correct(Value kept, Value unscale);
  void store(Value kept);
  void poison();

  StateTables &t;
  KernelBuilder &k;
  const LayerShape &s;
  Value program; ///< its number: the place of its matrix in the list
  bool isLeft;   ///< the shorter side is dv
  int64_t n, m, width, block, most;
  Value base;                        ///< of the matrix
  Value vectors, chunk, sigma, room; ///< the decomposition
  Value part, products, squares, correction, result;
};

} // namespace

void Init::allocate() {
  // Columns of H are rows of memory.
  const SmallVector<int64_t> chunkShape =
      isLeft ? SmallVector<int64_t>{width, n} : SmallVector<int64_t>{n, width};
  vectors = k.name("vectors", k.shared({n + 1, n}, k.f32()));
  chunk = k.name("chunk", k.shared(chunkShape, k.f32()));
  sigma = k.name("sigma", k.shared({n}, k.f64()));
  room = k.name("room", k.shared({n + SS_GRAM_ROOM}, k.f64()));
  part = k.name("part", k.shared({most, width}, k.f32()));
  products = k.name("products", k.shared({most, most}, k.f64()));
  squares = k.name("squares", k.shared({most}, k.f64()));
  correction = k.name("correction", k.shared({most, most}, k.f32()));
  result = k.name("result", k.shared({most, width}, k.f32()));
}

/// The longer side in steps of `width`.
void Init::overChunks(llvm::function_ref<void(Value first)> body) {
  k.loop(k.index(0), k.index(m), width, body);
}

/// A chunk of the matrix from column `first` of A on, times `scale`, if any.
void Init::loadChunk(Value first, Value scale) {
  const int64_t length = isLeft ? n : width;
  k.overWarps(k.index(isLeft ? width : n), [&](Value i) {
    Value column = isLeft ? k.add(first, i) : i;
    Value at = k.add(base, k.mul(column, k.index(s.dv)));
    if (!isLeft)
      at = k.add(at, first);
    Value loaded = k.load(row(length), arg("matrices"), at);
    if (scale)
      loaded = k.map(row(length), loaded,
                     [&](ValueRange e) { return k.mul(e[0], scale); });
    k.store(loaded, chunk, {i, k.index(0)});
  });
}

/// A A^T, then its decomposition; returns the status.
Value Init::multiplyOut() {
  k.note("Gram matrix of the shorter side, chunk by chunk");
  Value one = k.integer(1), zero = k.integer(0);
  overChunks([&](Value first) {
    loadChunk(first, Value());
    Value isFirst = k.select(k.less(k.toI32(first), one), one, zero);
    k.call("ss_add_gram",
           {k.integer(int32_t(n)), k.integer(int32_t(width)), k.integer(isLeft),
            isFirst, chunk, vectors},
           {4, 5}, {5});
  });
  k.note("its singular vectors");
  Value share = k.max(arg("policy_value"), k.constant("least_share", kLeastShare));
  return k.name("bits", k.call("ss_gram_svd",
                               {k.integer(int32_t(n)), vectors, sigma, room,
                                k.extend(share)},
                               {1}, {1, 2, 3}));
}

/// How many weights are at least `share` of the largest.
Value Init::countLarge(Value share) {
  k.note("count what is large enough");
  Value least =
      k.name("least", k.mul(k.extend(share), k.read(sigma, k.index(0))));
  Value weights = k.load(row(n, k.f64()), sigma, {k.index(0)});
  Value large = k.map(row(n, k.i32()), weights, [&](ValueRange e) {
    Value counts = k.both(k.atLeast(e[0], least), k.less(k.wide(0), e[0]));
    return k.select(counts, k.integer(1), k.integer(0));
  });
  return k.name("found", k.toIndex(k.reduceAdd(large, 0)));
}

/// The power of two that brings the largest weight near 1, and its inverse.
Value Init::powerOf(Value largest, Value &unscale) {
  Value exponent = k.shiftRight(k.bitcast(k.i32(), k.narrow(largest)), 23);
  Value one = k.integer(1), high = k.integer(253);
  exponent = k.select(k.less(exponent, one), one, exponent);
  exponent =
      k.name("exponent", k.select(k.less(high, exponent), high, exponent));
  auto power = [&](Value biased) {
    return k.bitcast(k.f32(), k.mul(biased, k.integer(1 << 23)));
  };
  unscale = k.name("unscale", power(exponent));
  return k.name("scale", power(k.sub(k.integer(254), exponent)));
}

/// Elements from `first` on of the found vectors of the longer side to `part`.
void Init::loadFound(Value first, Value kept) {
  k.overWarps(kept, [&](Value i) {
    Value at = k.add(t.row(i, longSide()), first);
    k.store(k.load(row(width), arg("factors"), at), part, {i, k.index(0)});
  });
}

void Init::storeFound(Value from, Value first, Value kept) {
  k.overWarps(kept, [&](Value i) {
    k.store(k.load(row(width), from, {i, k.index(0)}), arg("factors"),
            k.add(t.row(i, longSide()), first));
  });
}

void Init::findOtherSide(Value kept, Value scale) {
  k.note("vectors of the shorter side");
  k.overWarps(kept, [&](Value i) {
    k.store(k.load(row(n), vectors, {i, k.index(0)}), arg("factors"),
            t.row(i, shortSide()));
  });
  k.note("times the matrix: the longer side");
  overChunks([&](Value first) {
    loadChunk(first, scale);
    k.matmulRows(vectors, chunk, part, false, isLeft, kept);
    storeFound(part, first, kept);
  });
}

void Init::gramOfFound(Value kept) {
  k.note("products of the longer side's vectors");
  k.overWarps(k.index(most), [&](Value i) {
    k.store(k.splat(row(most, k.f64()), k.wide(0)), products, {i, k.index(0)});
    // Rows that are not found stay so: in a product they would not go with 0.
    k.store(k.splat(row(width), k.real(0)), part, {i, k.index(0)});
  });
  overChunks([&](Value first) {
    loadFound(first, kept);
    k.addMatmul(part, part, products, false, true, kept);
  });
}

/// Row i of the vectors, less its share in the rows of larger weights, by 1
/// over its length, which is its weight.
void Init::correct(Value kept, Value unscale) {
  k.note("weights");
  k.overWarps(kept, [&](Value i) {
    Value square = k.read(products, {i, i});
    k.write(square, squares, i);
    k.write(k.mul(k.narrow(k.sqrt(square)), unscale), arg("weights"),
            k.add(t.base, i));
  });
  k.note("orthogonal to the rows of larger weights, and of unit length");
  Type wide = row(most, k.f64());
  Value columns = k.iota(row(most, k.i32()));
  k.overWarps(kept, [&](Value i) {
    Value inverse =
        k.name("inverse", k.div(k.wide(1), k.sqrt(k.read(squares, i))));
    Value self = k.name("self", k.toI32(i));
    Value inputs[] = {k.load(wide, products, {i, k.index(0)}),
                      k.load(wide, squares, {k.index(0)}), columns};
    Value factors = k.map(row(most), inputs, [&](ValueRange e) {
      Value shares = k.neg(k.div(k.mul(e[0], inverse), e[1]));
      Value own = k.select(k.equal(e[2], self), inverse, k.wide(0));
      return k.narrow(k.select(k.less(e[2], self), shares, own));
    });
    k.store(factors, correction, {i, k.index(0)});
  });
  overChunks([&](Value first) {
    loadFound(first, kept);
    k.matmulRows(correction, part, result, false, false, kept);
    storeFound(result, first, kept);
  });
}

void Init::store(Value kept) {
  Value unscale;
  Value scale = powerOf(k.read(sigma, k.index(0)), unscale);
  findOtherSide(kept, scale);
  gramOfFound(kept);
  correct(kept, unscale);
  k.write(k.toI32(kept), arg("rank"), t.state);
}

void Init::poison() {
  k.note("not finite: the state becomes one NaN component");
  Value zero = k.index(0);
  k.store(k.splat(row(s.dk), k.real(1)), arg("factors"), t.row(zero, 0));
  k.store(k.splat(row(s.dv), k.real(1)), arg("factors"), t.row(zero, s.dk));
  k.write(k.real(std::numeric_limits<double>::quiet_NaN()), arg("weights"),
          t.base);
  k.write(k.integer(1), arg("rank"), t.state);
}

/// Where the program's matrix is, and where its factors will be. Read once more behind
/// the decomposition: it takes all registers there are.
void Init::locate() {
  t.locateState(k.name("state", k.toIndex(k.read(arg("work"), program))));
  t.base = k.name("base", k.toIndex(k.read(arg("row_base"), t.state)));
  base = k.name("begin", k.toIndex(k.read(arg("matrix_base"), program)));
}

void Init::run() {
  allocate();
  locate();
  Value bits = multiplyOut();
  locate();
  Value broken =
      k.less(k.integer(0), k.bitAnd(bits, k.integer(SS_STATUS_NOT_FINITE)));
  k.branch(
      broken, [&] { poison(); },
      [&] {
        Value found =
            countLarge(k.max(arg("policy_value"), k.constant("least_share", kLeastShare)));
        Value limit = k.toIndex(arg("max_rank"));
        Value kept =
            k.name("kept", k.select(k.less(limit, found), limit, found));
        k.branch(
            k.less(k.index(most), found),
            [&] {
              k.note("more components than this kernel keeps: dense");
              k.write(k.integer(-1), arg("rank"), t.state);
            },
            [&] { store(kept); });
      });
  k.write(bits, arg("status"), t.state);
}

LogicalResult lowerInit(ss::FusedOp fused, const LayerShape &shape,
                        const KernelArguments &arguments, const KernelChoices &,
                        KernelBuilder &k) {
  for (Operation &op : fused.getBody().front().without_terminator())
    if (!isa<ss::InitOp>(op))
      return op.emitOpError("has no lowering inside an init kernel");
  if (std::min(shape.dv, shape.dk) > SS_GRAM_MOST_ROWS)
    return fused.emitOpError("initialises a state of ")
           << shape.dv << " x " << shape.dk << ", expected a side of at most "
           << SS_GRAM_MOST_ROWS
           << ": compile without init, and the runtime decomposes on the host";
  overWork(k, arguments, [&](Value program, Value) {
    StateTables tables(k, shape, arguments);
    Init(tables, program).run();
  });
  return success();
}

} // namespace sinkstate
