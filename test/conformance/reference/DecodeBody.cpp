//===- DecodeBody.cpp - Append one pair and read the state ----------------===//

#include "KernelBodies.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::reference {
namespace {

/// exp of less is zero in f32: the bound of docs/interfaces.md section 3, which
/// keeps the running sums precise.
constexpr double kLowestLogDecay = -104;

double dot(const Vector &a, const Vector &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

/// sum of weight * u (v . x) over components.
Vector applied(const std::vector<Component> &components, const Vector &x,
               int32_t dv) {
  Vector y(size_t(dv), 0.0);
  for (const Component &component : components) {
    double coefficient = component.weight * dot(component.v, x);
    for (size_t r = 0; r < y.size(); ++r)
      y[r] += coefficient * component.u[r];
  }
  return y;
}

/// What one program is about.
struct Program {
  Program(const LayerSpec &layer, const DecodeInputs &in, int64_t program)
      : row(program / layer.heads), head(program % layer.heads),
        slot(in.slots[row]),
        y(in.y + row * in.yStride + head * layer.dv),
        v(in.v.row(row) + head * layer.dv) {
    if (slot < 0)
      return;
    const int64_t group = layer.heads / layer.keyHeads;
    keyHead = head / group;
    writesKey = head % group == 0;
    q = normalized(layer, in.q.row(row) + keyHead * layer.dk,
                   layer.queryScale);
    k = normalized(layer, in.k.row(row) + keyHead * layer.dk, 1);
    decay = logDecay(layer, head, in.gate.row(row), in.aLog, in.dtBias);
    weight = writeWeight(layer, head, in.gate.row(row),
                         layer.hasBeta() ? in.beta.row(row) : nullptr,
                         in.dtBias);
  }

  int64_t row, head;
  int32_t slot;
  float *y;
  const float *v;
  int64_t keyHead = 0;
  bool writesKey = false;
  Vector q, k, decay;
  double weight = 0;
};

void writeZeros(const LayerSpec &layer, float *y) {
  for (int32_t r = 0; r < layer.dv; ++r)
    y[r] = 0;
}

/// H x of a dense state [dk, dv] at running log-decay g.
Vector denseApplied(const LayerSpec &layer, const float *h, const Vector &g,
                    const Vector &x) {
  Vector y(size_t(layer.dv), 0.0);
  for (int64_t c = 0; c < layer.dk; ++c) {
    double factor = x[size_t(c)] * std::exp(g[g.size() == 1 ? 0 : size_t(c)]);
    for (int64_t r = 0; r < layer.dv; ++r)
      y[size_t(r)] += factor * h[c * layer.dv + r];
  }
  return y;
}

} // namespace

void decodeProgram(const LayerSpec &layer, const StateTables &tables,
                   const DecodeInputs &in, int64_t program) {
  const Program p(layer, in, program);
  if (p.slot < 0)
    return writeZeros(layer, p.y);
  StateView state(layer, tables, int64_t(p.slot) * layer.heads + p.head);
  Vector g = state.runningDecay();
  for (size_t c = 0; c < g.size(); ++c)
    g[c] += std::max(p.decay[c], kLowestLogDecay);
  const std::vector<Component> buffered = state.buffered(g);
  const std::vector<Component> stored =
      state.isDense() ? std::vector<Component>() : state.stored(g);
  auto read = [&](const Vector &x) {
    Vector y = applied(buffered, x, layer.dv);
    Vector rest = state.isDense()
                      ? denseApplied(layer, state.row(0), g, x)
                      : applied(stored, x, layer.dv);
    for (size_t r = 0; r < y.size(); ++r)
      y[r] += rest[r];
    return y;
  };

  const Vector held = layer.theta() != 0 ? read(p.k) : Vector();
  const Vector y = read(p.q);
  const double match = dot(p.k, p.q);
  const int64_t pair = state.count();
  for (int64_t r = 0; r < layer.dv; ++r) {
    double u = p.weight *
               (p.v[r] - (held.empty() ? 0.0 : held[size_t(r)]));
    state.update(pair)[r] = float(u);
    p.y[r] = float(y[size_t(r)] + u * match);
  }
  for (size_t c = 0; c < g.size(); ++c)
    state.logDecay(pair)[c] = float(g[c]);
  if (p.writesKey)
    for (int64_t c = 0; c < layer.dk; ++c)
      state.key(pair)[c] = float(p.k[size_t(c)]);
}

void decodeDenseProgram(const LayerSpec &layer, const DecodeInputs &in,
                        int64_t program) {
  const Program p(layer, in, program);
  if (p.slot < 0)
    return writeZeros(layer, p.y);
  const int64_t state = int64_t(p.slot) * layer.heads + p.head;
  for (int64_t r = 0; r < layer.dv; ++r) {
    float *row = in.dense + (state * layer.dv + r) * layer.dk;
    Vector decayed(row, row + layer.dk);
    for (size_t c = 0; c < decayed.size(); ++c)
      decayed[c] *= std::exp(p.decay[p.decay.size() == 1 ? 0 : c]);
    double held = layer.theta() != 0 ? dot(decayed, p.k) : 0.0;
    double u = p.weight * (p.v[r] - held);
    for (size_t c = 0; c < decayed.size(); ++c) {
      decayed[c] += u * p.k[c];
      row[c] = float(decayed[c]);
    }
    p.y[r] = float(dot(decayed, p.q));
  }
}

} // namespace sinkstate::reference
