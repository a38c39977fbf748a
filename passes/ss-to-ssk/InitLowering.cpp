//===- InitLowering.cpp - a state from a dense matrix ---------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "Lowerings.h"
#include "RandomBits.h"
#include "sinkstate/routines.h"
#include <algorithm>
#include <limits>

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

namespace {

/// Vectors of a block, and the most of all blocks: what the scratch of a GPU's
/// multiprocessor has room for.
constexpr int64_t kBlockVectors = SS_INIT_BLOCK, kMostVectors = SS_INIT_MOST_COMPONENTS;
/// Subspace iterations of a block. What is kept is at least twice the last weight
/// that is found, so an error of 2^-(4 n + 2) of a weight: below 1e-3 with one
/// to spare, on states whose weights fall slowly.
constexpr int64_t kIterations = 3;
/// The matrix is worked on in float32: smaller weights are its rounding.
constexpr double kLeastShare = 0x1p-16;

/// Randomized SVD of one matrix, block by block (docs/state-math.md section 4).
/// A block is a random start, a few subspace iterations and an orthogonalisation
/// against the blocks before; then it is taken out of the matrix. Blocks end
/// when the last weight of one is below half of what is kept, which leaves the
/// components that are kept well inside the space that was found. One exact SVD
/// in that space gives them.
class Init {
public:
  Init(StateTables &tables, Value program)
      : t(tables), k(tables.k), s(tables.shape), program(program),
        block(std::min({kBlockVectors, s.dv, s.dk})),
        most(std::min({kMostVectors, s.dv, s.dk}) / block * block) {}

  void run();

private:
  Value arg(StringRef name) { return t.arguments[name]; }
  Type row(int64_t columns, Type element = {}) {
    return k.lanes({columns}, element);
  }

  void allocate();
  void fillZero(Value matrix, int64_t rows, int64_t columns);
  void copyRows(Value from, Value to, Value firstRow, int64_t rows,
                int64_t columns, Type element);
  void addStatus(Value bits);
  Value loadScaled();
  void randomTest(Value number);
  void orthonormalize(Value rows);
  void project();
  void iterate(Value number);
  Value lastAndFirst(Value &first);
  void takeOut();
  void decompose();
  void orthogonalizeRight();
  void store(Value unscale);
  void poison();

  StateTables &t;
  KernelBuilder &k;
  const LayerShape &s;
  Value program; ///< its number: the place of its matrix in the list
  int64_t block, most;
  Value matrix;                    ///< [dk, dv]: columns of H, scaled
  Value test, left, right, spare;  ///< one block
  Value gram, factor, vectors, squares, coefficients;
  Value allLeft, allRight;         ///< all blocks
  Value bigFactor, core, xt, yt, sigma;
  Value status;
};

} // namespace

void Init::allocate() {
  matrix = k.name("matrix", k.shared({s.dk, s.dv}, k.f32()));
  test = k.name("test", k.shared({block, s.dk}, k.f32()));
  left = k.name("left", k.shared({block, s.dv}, k.f32()));
  right = k.name("right", k.shared({block, s.dk}, k.f32()));
  spare = k.name("spare", k.shared({block, s.dv}, k.f32()));
  gram = k.name("gram", k.shared({block, block}, k.f64()));
  factor = k.name("factor", k.shared({block, block}, k.f64()));
  vectors = k.name("vectors", k.shared({block, block}, k.f64()));
  squares = k.name("squares", k.shared({block}, k.f64()));
  coefficients = k.name("coefficients", k.shared({block, most}, k.f64()));
  allLeft = k.name("all_left", k.shared({most, s.dv}, k.f32()));
  allRight = k.name("all_right", k.shared({most, s.dk}, k.f32()));
  bigFactor = k.name("all_factor", k.shared({most, most}, k.f64()));
  core = k.name("core", k.shared({most, most}, k.f64()));
  xt = k.name("xt", k.shared({most, most}, k.f64()));
  yt = k.name("yt", k.shared({most, most}, k.f64()));
  sigma = k.name("sigma", k.shared({most}, k.f64()));
  status = k.name("status", k.shared({1}, k.i32()));
  k.write(k.integer(0), status, k.index(0));
}

void Init::fillZero(Value to, int64_t rows, int64_t columns) {
  k.loop(k.index(0), k.index(rows), 1, [&](Value i) {
    k.store(k.splat(row(columns), k.real(0)), to, {i, k.index(0)});
  });
}

void Init::copyRows(Value from, Value to, Value firstRow, int64_t rows,
                    int64_t columns, Type element) {
  k.loop(k.index(0), k.index(rows), 1, [&](Value i) {
    k.store(k.load(row(columns, element), from, {i, k.index(0)}), to,
            {k.add(firstRow, i), k.index(0)});
  });
}

void Init::addStatus(Value bits) {
  Value finite = k.bitAnd(bits, k.integer(SS_STATUS_NOT_FINITE |
                                          SS_STATUS_NOT_CONVERGED));
  k.write(k.bitOr(k.read(status, k.index(0)), finite), status, k.index(0));
}

/// Loads the matrix, scaled by a power of two so that nothing overflows when it
/// is squared; returns the power that undoes it.
Value Init::loadScaled() {
  k.note("scale the matrix by a power of two");
  Type tile = row(s.dv);
  Value base =
      k.name("begin", k.toIndex(k.read(arg("matrix_base"), program)));
  auto column = [&](Value c) {
    return k.load(tile, arg("matrices"),
                  k.add(base, k.mul(c, k.index(s.dv))));
  };
  Value largest = k.loop(
      k.index(0), k.index(s.dk), 1, {k.real(0)},
      [&](Value c, ValueRange before) -> Values {
        Value magnitudes = k.map(tile, column(c), [&](ValueRange e) {
          return k.max(e[0], k.neg(e[0]));
        });
        return {k.max(before[0], k.reduceMax(magnitudes))};
      })[0];
  Value exponent = k.shiftRight(k.bitcast(k.i32(), largest), 23);
  Value one = k.integer(1), high = k.integer(253);
  exponent = k.select(k.less(exponent, one), one, exponent);
  exponent =
      k.name("exponent", k.select(k.less(high, exponent), high, exponent));
  auto power = [&](Value biased) {
    return k.bitcast(k.f32(), k.mul(biased, k.integer(1 << 23)));
  };
  Value scale = k.name("scale", power(k.sub(k.integer(254), exponent)));
  k.loop(k.index(0), k.index(s.dk), 1, [&](Value c) {
    Value scaled = k.map(tile, column(c),
                         [&](ValueRange e) { return k.mul(e[0], scale); });
    k.store(scaled, matrix, {c, k.index(0)});
  });
  return k.name("unscale", power(exponent));
}

/// Nearly Gaussian numbers, sums of four uniform ones of 16 bits: they depend on
/// the seed and their place alone.
void Init::randomTest(Value number) {
  k.note("random start of the block, from seed and place");
  k.loop(k.index(0), k.index(block), 1, [&](Value i) {
    Value vector = k.toI64(k.add(k.mul(number, k.index(block)), i));
    Value key = splitmix64(k, k.bitXor(splitmix64(k, arg("seed")), vector));
    Value halves[] = {k.name("key", k.lowHalf(key)),
                      k.name("key", k.highHalf(key))};
    Value elements = k.name("elements", k.iota(row(s.dk, k.i32())));
    Value numbers = k.map(row(s.dk), elements, [&](ValueRange e) {
      Value sum = k.integer(-2 * 0xffff), place = placeBits(k, e[0]);
      for (Value half : halves) {
        Value bits = hash32(k, k.bitXor(place, half));
        sum = k.add(sum, k.bitAnd(bits, k.integer(0xffff)));
        sum = k.add(sum, k.shiftRight(bits, 16));
      }
      return k.mul(k.toReal(sum), k.real(0x1p-15));
    });
    k.store(numbers, test, {i, k.index(0)});
  });
}

void Init::orthonormalize(Value rows) {
  k.matmul(rows, rows, gram, false, true);
  addStatus(k.call("ss_orthogonalize", {k.integer(block), gram, factor}, {1},
                   {1, 2}));
  k.matmul(factor, rows, rows, false, false);
}

/// Takes the blocks before out of the block's left vectors.
void Init::project() {
  k.note("orthogonal to the blocks before");
  k.matmul(left, allLeft, coefficients, false, true);
  k.matmul(coefficients, allLeft, spare, false, false);
  Type tile = row(s.dv);
  k.loop(k.index(0), k.index(block), 1, [&](Value i) {
    Value rest = k.map(tile,
                       {k.load(tile, left, {i, k.index(0)}),
                        k.load(tile, spare, {i, k.index(0)})},
                       [&](ValueRange e) { return k.sub(e[0], e[1]); });
    k.store(rest, left, {i, k.index(0)});
  });
}

void Init::iterate(Value number) {
  auto improve = [&] {
    k.branch(k.less(k.index(0), number), [&] { project(); });
    orthonormalize(left);
  };
  k.note("subspace iterations");
  k.matmul(test, matrix, left, false, false);
  improve();
  k.loop(k.index(0), k.index(kIterations), 1, [&](Value) {
    k.matmul(left, matrix, right, false, true);
    orthonormalize(right);
    k.matmul(right, matrix, left, false, false);
    improve();
  });
  improve(); // twice is enough
  k.matmul(left, matrix, right, false, true);
}

/// Squares of the last and the first weight of the block, f64.
Value Init::lastAndFirst(Value &first) {
  k.note("weights of the block, squared");
  k.matmul(right, right, gram, false, true);
  addStatus(k.call("ss_core_svd",
                   {k.integer(block), gram, factor, squares, vectors}, {1},
                   {1, 2, 3, 4}));
  first = k.read(squares, k.index(0));
  return k.read(squares, k.index(block - 1));
}

void Init::takeOut() {
  k.note("take the block out of the matrix");
  Type tile = row(s.dv);
  k.loop(k.index(0), k.index(s.dk), 1, [&](Value c) {
    Value rest = k.load(tile, matrix, {c, k.index(0)});
    rest = k.loop(k.index(0), k.index(block), 1, {rest},
                  [&](Value i, ValueRange carried) -> Values {
                    Value coef = k.name("coef", k.neg(k.read(right, {i, c})));
                    Value u = k.load(tile, left, {i, k.index(0)});
                    return {k.map(tile, {carried[0], u}, [&](ValueRange e) {
                      return k.fma(coef, e[1], e[0]);
                    })};
                  })[0];
    k.store(rest, matrix, {c, k.index(0)});
  });
}

/// B = R^T (T B) with orthonormal rows of T B; R is left in `core`.
void Init::orthogonalizeRight() {
  k.note("orthogonalise the right side: B = R^T (T B)");
  Value size = k.integer(most);
  k.matmul(allRight, allRight, core, false, true);
  Value bits = k.name("bits", k.call("ss_orthogonalize",
                                     {size, core, bigFactor}, {1}, {1, 2}));
  addStatus(bits);
  Value again = k.bitAnd(bits, k.integer(SS_STATUS_ILL_CONDITIONED));
  k.branch(k.less(k.integer(0), again), [&] {
    k.note("ill-conditioned: form Q and orthogonalise it once more");
    k.matmul(bigFactor, allRight, allRight, false, false);
    k.matmul(allRight, allRight, yt, false, true);
    addStatus(k.call("ss_orthogonalize", {size, yt, bigFactor}, {1}, {1, 2}));
    k.matmul(yt, core, core, false, false);
  });
}

void Init::decompose() {
  orthogonalizeRight();
  k.note("R = X diag(sigma) Y^T, H = left^T R^T Q: the exact SVD in this space");
  addStatus(k.call("ss_core_svd", {k.integer(most), core, xt, sigma, yt}, {1},
                   {1, 2, 3, 4}));
  k.matmul(yt, allLeft, allLeft, false, false);
  k.matmul(xt, bigFactor, bigFactor, false, false);
  k.matmul(bigFactor, allRight, allRight, false, false);
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

void Init::store(Value unscale) {
  k.note("keep what is large enough");
  Value share = k.max(arg("policy_value"), k.real(kLeastShare));
  Value least = k.name(
      "least", k.mul(k.extend(share), k.read(sigma, k.index(0))));
  Value kept = k.loop(
      k.index(0), k.index(most), 1, {k.index(0)},
      [&](Value i, ValueRange count) -> Values {
        Value weight = k.read(sigma, i);
        Value large = k.both(k.atLeast(weight, least),
                             k.less(k.extend(k.real(0)), weight));
        Value fits = k.less(i, k.toIndex(arg("max_rank")));
        return {k.add(count[0], k.select(k.both(large, fits), k.index(1),
                                         k.index(0)))};
      })[0];
  k.loop(k.index(0), kept, 1, [&](Value i) {
    k.store(k.load(row(s.dk), allRight, {i, k.index(0)}), arg("factors"),
            t.row(i, 0));
    k.store(k.load(row(s.dv), allLeft, {i, k.index(0)}), arg("factors"),
            t.row(i, s.dk));
    k.write(k.mul(k.narrow(k.read(sigma, i)), unscale), arg("weights"),
            k.add(t.base, i));
  });
  k.write(k.toI32(kept), arg("rank"), t.state);
}

void Init::run() {
  allocate();
  Value unscale = loadScaled();
  fillZero(allLeft, most, s.dv);
  fillZero(allRight, most, s.dk);
  Value half = k.mul(k.real(0.5), k.max(arg("policy_value"),
                                        k.real(kLeastShare)));
  Value limit = k.name("limit", k.extend(k.mul(half, half)));
  Values end = k.loop(
      k.index(0), k.index(most / block), 1,
      {k.integer(1), k.extend(k.real(0))},
      [&](Value number, ValueRange carried) -> Values {
        return k.choose(
            k.less(k.integer(0), carried[0]),
            [&]() -> Values {
              randomTest(number);
              iterate(number);
              Value first;
              Value last = lastAndFirst(first);
              Value largest = k.select(k.less(carried[1], first), first,
                                       carried[1]);
              k.note("keep the block");
              Value begin = k.mul(number, k.index(block));
              copyRows(left, allLeft, begin, block, s.dv, k.f32());
              copyRows(right, allRight, begin, block, s.dk, k.f32());
              takeOut();
              Value more = k.less(k.mul(limit, largest), last);
              return {k.select(more, k.integer(1), k.integer(0)), largest};
            },
            [&]() -> Values { return {carried[0], carried[1]}; });
      });
  decompose();
  Value bits = k.name("bits", k.read(status, k.index(0)));
  Value broken =
      k.less(k.integer(0), k.bitAnd(bits, k.integer(SS_STATUS_NOT_FINITE)));
  const bool complete = most == std::min(s.dv, s.dk);
  Value tooMany = k.both(k.less(k.integer(0), end[0]),
                         k.less(k.index(0), k.index(complete ? 0 : 1)));
  k.branch(
      broken, [&] { poison(); },
      [&] {
        k.branch(
            tooMany,
            [&] {
              k.note("more components than this kernel finds: dense");
              k.write(k.integer(-1), arg("rank"), t.state);
            },
            [&] { store(unscale); });
      });
  k.write(bits, arg("status"), t.state);
}

LogicalResult lowerInit(ss::FusedOp fused, const LayerShape &shape,
                        const KernelArguments &arguments,
                        const KernelChoices &, KernelBuilder &k) {
  for (Operation &op : fused.getBody().front().without_terminator())
    if (!isa<ss::InitOp>(op))
      return op.emitOpError("has no lowering inside an init kernel");
  overWork(k, arguments, [&](Value program, Value state) {
    StateTables tables(k, shape, arguments);
    tables.locateState(state);
    tables.base = k.name(
        "base", k.toIndex(k.read(arguments["row_base"], tables.state)));
    Init(tables, program).run();
  });
  return success();
}

} // namespace sinkstate
