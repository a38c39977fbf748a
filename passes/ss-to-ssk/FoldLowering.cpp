//===- FoldLowering.cpp - a full buffer into its matrix -------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// A deferred state is H as it was K tokens ago and K pairs since. With G_j the
// log-decays up to pair j and G those up to the last one,
//
//   H <- H diag(exp G) + sum_j u_j (k_j * exp(G - G_j))^T
//
// Row c of memory is column c of H, so a row needs element c of the decayed
// keys: they go to scratch once. The same pass multiplies the new rows with the
// token's vectors, whose elements carry the token's own decay.
//
//===----------------------------------------------------------------------===//
#include "Lowerings.h"

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

namespace {
class FoldLowering {
public:
  FoldLowering(StateTables &tables, const KernelChoices &choices)
      : t(tables), k(tables.k),
        rowsInFlight(largestDivisor(tables.shape.dk, choices.rowsInFlight)) {}

  Values run(ValueRange vectors, Value logDecay);

private:
  void readLastDecay();
  void decayKeys();
  void scaleVectors(ValueRange vectors, Value logDecay);
  Value foldedRows(Value c);

  StateTables &t;
  KernelBuilder &k;
  int64_t rowsInFlight;
  Value pairs;     ///< all of them, index
  Value lastDecay; ///< G: a scalar, or a tile over the key channels
  Value keys;      ///< scratch [pairs, dk]: decayed
  Value kept;      ///< exp G: a scalar, or scratch [dk]
  Values scaled;   ///< scratch [dk] of every vector
};
} // namespace

void FoldLowering::readLastDecay() {
  pairs = k.index(t.shape.capacity);
  Value last = t.bufferG(k.index(t.shape.capacity - 1));
  Value decays = t.arguments["buffer_g"];
  if (!t.shape.channelDecay) {
    lastDecay = k.name("last_decay", k.read(decays, last));
    kept = k.name("kept", k.exp(lastDecay));
    return;
  }
  lastDecay = k.name("last_decay", k.load(t.keyTile(), decays, last));
  kept = k.name("kept", k.shared({t.shape.dk}, k.f32()));
  k.store(k.map(t.keyTile(), lastDecay,
                [&](ValueRange e) { return k.exp(e[0]); }),
          kept, k.index(0));
}

void FoldLowering::decayKeys() {
  keys = k.name("decayed_keys",
                k.shared({t.shape.capacity, t.shape.dk}, k.f32()));
  k.loop(k.index(0), pairs, 1, [&](Value j) {
    Value key = k.load(t.keyTile(), t.arguments["buffer_k"], t.fullBufferK(j));
    Value decays = t.arguments["buffer_g"];
    if (t.shape.channelDecay) {
      Value g = k.load(t.keyTile(), decays, t.bufferG(j));
      key = k.map(t.keyTile(), {key, g, lastDecay}, [&](ValueRange e) {
        return k.mul(e[0], k.exp(k.sub(e[2], e[1])));
      });
    } else {
      Value factor = k.name(
          "factor", k.exp(k.sub(lastDecay, k.read(decays, t.bufferG(j)))));
      key = k.map(t.keyTile(), key,
                  [&](ValueRange e) { return k.mul(e[0], factor); });
    }
    k.store(key, keys, {j, k.index(0)});
  });
}

void FoldLowering::scaleVectors(ValueRange vectors, Value logDecay) {
  Value decay = t.shape.channelDecay ? Value() : k.exp(logDecay);
  for (Value x : vectors) {
    Value memory = k.name("coefficients", k.shared({t.shape.dk}, k.f32()));
    Value decayed =
        t.shape.channelDecay
            ? k.map(t.keyTile(), {x, logDecay},
                    [&](ValueRange e) { return k.mul(e[0], k.exp(e[1])); })
            : k.map(t.keyTile(), x,
                    [&](ValueRange e) { return k.mul(e[0], decay); });
    k.store(decayed, memory, k.index(0));
    scaled.push_back(memory);
  }
}

/// Rows c and following of the matrix with all pairs in it.
Value FoldLowering::foldedRows(Value c) {
  const LayerShape &s = t.shape;
  const int64_t n = rowsInFlight;
  Type rows = k.lanes({n, s.dv}), column = k.replicated({n});
  Value h = k.load(rows, t.denseRows(), t.denseRow(c), k.index(s.dv));
  if (s.channelDecay)
    h = k.map(rows, {h, k.load(column, kept, c)}, {{0, 1}, {0}},
              [&](ValueRange e) { return k.mul(e[0], e[1]); });
  else
    h = k.map(rows, h, [&](ValueRange e) { return k.mul(e[0], kept); });
  h = k.loop(k.index(0), pairs, 1, h, [&](Value j, ValueRange carried) {
    Value u = k.load(t.valueTile(), t.arguments["buffer_u"], t.bufferU(j));
    Value key = k.load(column, keys, {j, c});
    return Values{k.map(rows, {carried[0], key, u}, {{0, 1}, {0}, {1}},
                        [&](ValueRange e) {
                          return k.fma(e[1], e[2], e[0]);
                        })};
  })[0];
  return k.name("folded_rows", h);
}

Values FoldLowering::run(ValueRange vectors, Value logDecay) {
  const LayerShape &s = t.shape;
  k.note("a full buffer: its pairs are written into the state");
  readLastDecay();
  decayKeys();
  scaleVectors(vectors, logDecay);
  Values zeros(vectors.size(), k.splat(t.valueTile(), k.real(0)));
  return k.loop(
      k.index(0), k.index(s.dk), rowsInFlight, zeros,
      [&](Value c, ValueRange carried) -> Values {
        Value h = foldedRows(c);
        k.store(h, t.denseRows(), t.denseRow(c), k.index(s.dv));
        Values next(carried);
        for (auto [sum, memory] : llvm::zip_equal(next, scaled)) {
          Value coef =
              k.name("coef", k.load(k.replicated({rowsInFlight}), memory, c));
          sum = k.accumulate(sum, coef, h);
        }
        return next;
      });
}

Values foldAndMultiply(StateTables &tables, const KernelChoices &choices,
                       ValueRange vectors, Value logDecay) {
  return FoldLowering(tables, choices).run(vectors, logDecay);
}

} // namespace sinkstate
