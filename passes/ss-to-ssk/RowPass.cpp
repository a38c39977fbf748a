//===- RowPass.cpp - products with a state in one pass --------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "RowPass.h"

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

Values RowPass::run(ValueRange inVectors, ArrayRef<StringRef> inNames,
                    Value inLogDecay) {
  names.assign(inNames.begin(), inNames.end());
  vectors.assign(inVectors.begin(), inVectors.end());
  logDecay = inLogDecay;
  k.note("decay since the last compaction");
  if (t.shape.channelDecay) {
    for (Value x : vectors)
      decayedVectors.push_back(k.name(
          "decayed", k.map(t.keyTile(), {x, logDecay}, [&](ValueRange v) {
            return k.mul(v[0], k.exp(v[1]));
          })));
  } else {
    decayedVectors = vectors;
    scale = k.name("decay", k.exp(logDecay));
  }

  if (parts == 1)
    return bufferedPairs(storedRows(Value()));
  // Parts write nothing, scratch neither.
  if (t.shape.isDeferred())
    storeCoefficients();
  else if (t.shape.mayBeDense())
    k.branch(t.isDense, [&] { storeCoefficients(); });
  SmallVector<Type> types(vectors.size(), t.valueTile());
  k.note("chunks of rows, in turn to every part; pairs to the last one");
  return k.parts(
      parts, types, [&](Value one) { return storedRows(one); },
      [&](ValueRange own) {
        part = Value();
        return bufferedPairs(Values(own));
      });
}

Values RowPass::storedRows(Value inPart) {
  part = inPart;
  Values zeros(vectors.size(), k.splat(t.valueTile(), k.real(0)));
  if (t.shape.isDeferred())
    return denseRows(zeros);
  if (!t.shape.mayBeDense())
    return components(zeros);
  return k.choose(
      t.isDense, [&] { return denseRows(zeros); },
      [&] { return components(zeros); });
}

int64_t RowPass::pairsInFlight() const {
  return t.shape.isDeferred() ? rowsInFlight
                              : std::min<int64_t>(rowsInFlight, 4);
}

int64_t RowPass::denseInFlight() const {
  const int64_t wanted =
      rowsInFlight == 4 && !t.shape.delta ? 2 * rowsInFlight : rowsInFlight;
  return largestDivisor(t.shape.dk, wanted);
}

Values RowPass::overRows(Value count, Values sums, int64_t n, Chunk chunk) {
  const int64_t step = part ? n * parts : n;
  Value start =
      part ? k.name("start", k.mul(part, k.index(n))) : k.index(0);
  return k.loop(start, count, step, sums, [&](Value i, ValueRange carried) {
    // Whole chunks are masked too: a loop of their own would be as much code
    // again, in more registers.
    Value left = n == 1 ? Value() : k.name("left", k.sub(count, i));
    return chunk(i, n, left, Values(carried));
  });
}

Values RowPass::components(Values sums) {
  const LayerShape &s = t.shape;
  k.note("stored components: every row [v | u] is read once");
  Value rows = t.arguments["rows"], weights = t.arguments["weights"];
  sums = overRows(
      t.rank, sums, rowsInFlight,
      [&](Value i, int64_t n, Value limit, Values carried) -> Values {
        if (next)
          next->wantRow(i);
        Value stride = k.index(s.rowLength());
        Value v = k.name("v_rows", k.loadScaled(k.lanes({n, s.dk}), rows,
                                                t.row(i, 0), stride, limit));
        Value u = k.name("u_rows", k.loadScaled(k.lanes({n, s.dv}), rows,
                                                t.row(i, s.dk), stride, limit));
        Type coefficients = k.replicated({n});
        Value weight =
            k.name("weight", k.load(coefficients, weights, k.add(t.base, i),
                                    Value(), limit));
        if (scale)
          weight = k.name("decayed_weight", k.map(coefficients, weight, [&](ValueRange w) {
                            return k.mul(w[0], scale);
                          }));
        // The scale of both halves is undone once a row, in its weight.
        if (double stored = KernelBuilder::scaleOf(rows); stored != 1)
          weight = k.name("row_weight", k.map(coefficients, weight, [&](ValueRange w) {
                            return k.mul(w[0], k.real(1 / (stored * stored)));
                          }));
        for (auto [sum, x, name] :
             llvm::zip_equal(carried, decayedVectors, names)) {
          Value c = k.name("coef", k.map(coefficients, {k.dot(v, x), weight},
                                         [&](ValueRange p) {
                                           return k.mul(p[0], p[1]);
                                         }));
          sum = k.name(name, k.accumulate(sum, c, u));
        }
        return carried;
      });
  if (next)
    next->wantRowsFrom(t.rank);
  return sums;
}

/// The coefficients of dense rows are the vectors' elements, which are spread
/// over the lanes; scratch turns them into values that every lane has.
void RowPass::storeCoefficients() {
  k.note("dense state: row c is column c of H");
  for (Value x : decayedVectors) {
    Value memory = k.name("coefficients", k.shared({t.shape.dk}, k.f32()));
    Value scaled =
        scale ? k.map(t.keyTile(), x,
                      [&](ValueRange e) { return k.mul(e[0], scale); })
              : x;
    k.store(scaled, memory, k.index(0));
    coefficients.push_back(memory);
  }
}

Values RowPass::denseRows(Values sums) {
  const LayerShape &s = t.shape;
  if (!part)
    storeCoefficients();
  Value rows = t.denseRows();
  const int64_t n = denseInFlight();
  Value start =
      part ? k.name("start", k.mul(part, k.index(n))) : k.index(0);
  return k.loop(start, k.index(s.dk), part ? n * parts : n, sums,
                [&](Value c, ValueRange carried) -> Values {
                  Values next(carried);
                  Value h = k.name("h_rows",
                                   k.load(k.lanes({n, s.dv}), rows,
                                          t.denseRow(c), k.index(s.dv)));
                  for (auto [sum, memory, name] :
                       llvm::zip_equal(next, coefficients, names)) {
                    Value coef =
                        k.name("coef", k.load(k.replicated({n}), memory, c));
                    sum = k.name(name, k.accumulate(sum, coef, h));
                  }
                  return next;
                });
}

Values RowPass::bufferedPairs(Values sums) {
  const LayerShape &s = t.shape;
  k.note("buffered pairs, each with the decay since its own token");
  Value keys = t.arguments["buffer_k"], values = t.arguments["buffer_u"],
        decays = t.arguments["buffer_g"];
  sums = overRows(
      t.count, sums, pairsInFlight(),
      [&](Value j, int64_t n, Value limit, Values carried) -> Values {
        if (next)
          next->wantPair(j);
        Value key = k.name("keys", k.load(k.lanes({n, s.dk}), keys,
                                          t.bufferK(j), k.index(s.dk), limit));
        Value u = k.name("u_rows", k.load(k.lanes({n, s.dv}), values,
                                          t.bufferU(j), k.index(s.dv), limit));
        Type coefficients = k.replicated({n});
        Value factor;
        if (s.channelDecay) {
          Value g = k.name("decays", k.load(k.lanes({n, s.dk}), decays,
                                            t.bufferG(j), k.index(s.dk), limit));
          key = k.map(k.lanes({n, s.dk}), {key, g, logDecay},
                      {{0, 1}, {0, 1}, {1}}, [&](ValueRange e) {
                        return k.mul(e[0], k.exp(k.sub(e[2], e[1])));
                      });
          k.name("decayed_keys", key);
        } else {
          Value g = k.name("decays", k.load(coefficients, decays, t.bufferG(j),
                                            Value(), limit));
          factor = k.name("factor", k.map(coefficients, g, [&](ValueRange e) {
                            return k.exp(k.sub(logDecay, e[0]));
                          }));
        }
        for (auto [sum, x, name] : llvm::zip_equal(carried, vectors, names)) {
          Value c = k.dot(key, x);
          if (factor)
            c = k.name("coef", k.map(coefficients, {c, factor}, [&](ValueRange e) {
                         return k.mul(e[0], e[1]);
                       }));
          sum = k.name(name, k.accumulate(sum, c, u));
        }
        return carried;
      });
  if (next)
    next->wantPairsFrom(t.count);
  return sums;
}

} // namespace sinkstate
