//===- StateView.cpp - One state as components in float64 -----------------===//

#include "StateView.h"

#include <cmath>

namespace sinkstate::reference {

StateView::StateView(const LayerSpec &layer, const StateTables &tables,
                     int64_t state, int32_t countAhead)
    : layer(layer), tables(tables), state(state), slot(state / layer.heads),
      head(state % layer.heads), pairs(layer.buffer + layer.draft),
      countAhead(countAhead) {}

float *StateView::key(int64_t pair) const {
  int64_t keyHead = head / (layer.heads / layer.keyHeads);
  return tables.bufferK +
         ((slot * layer.keyHeads + keyHead) * pairs + pair) * layer.dk;
}

float *StateView::update(int64_t pair) const {
  return tables.bufferU + (state * pairs + pair) * layer.dv;
}

float *StateView::logDecay(int64_t pair) const {
  return tables.bufferG + (state * pairs + pair) * decayChannels();
}

Vector StateView::runningDecay() const {
  if (count() == 0)
    return Vector(size_t(decayChannels()), 0.0);
  const float *last = logDecay(count() - 1);
  return Vector(last, last + decayChannels());
}

void StateView::applyDecay(Component &component,
                           const Vector &logDecay) const {
  if (logDecay.size() == 1) {
    component.weight *= std::exp(logDecay[0]);
    return;
  }
  for (size_t c = 0; c < component.v.size(); ++c)
    component.v[c] *= std::exp(logDecay[c]);
}

std::vector<Component> StateView::stored(const Vector &g) const {
  std::vector<Component> components;
  for (int64_t i = 0; i < rank(); ++i) {
    const float *values = row(i);
    Component component{weight(i), Vector(values, values + layer.dk),
                        Vector(values + layer.dk,
                               values + layer.dk + layer.dv)};
    applyDecay(component, g);
    components.push_back(std::move(component));
  }
  return components;
}

std::vector<Component> StateView::buffered(const Vector &g) const {
  std::vector<Component> components;
  for (int64_t j = 0; j < count(); ++j) {
    Component component{1.0, Vector(key(j), key(j) + layer.dk),
                        Vector(update(j), update(j) + layer.dv)};
    Vector since = g;
    for (size_t c = 0; c < since.size(); ++c)
      since[c] -= logDecay(j)[c];
    applyDecay(component, since);
    components.push_back(std::move(component));
  }
  return components;
}

Vector StateView::matrix(const Vector &g) const {
  Vector h(size_t(layer.dk) * size_t(layer.dv), 0.0);
  std::vector<Component> components = buffered(g);
  if (isDense()) {
    for (int64_t c = 0; c < layer.dk; ++c)
      for (int64_t r = 0; r < layer.dv; ++r)
        h[size_t(c * layer.dv + r)] =
            row(0)[c * layer.dv + r] * std::exp(channel(g, c));
  } else {
    for (Component &component : stored(g))
      components.push_back(std::move(component));
  }
  for (const Component &component : components)
    for (int64_t c = 0; c < layer.dk; ++c)
      for (int64_t r = 0; r < layer.dv; ++r)
        h[size_t(c * layer.dv + r)] += component.weight *
                                       component.v[size_t(c)] *
                                       component.u[size_t(r)];
  return h;
}

} // namespace sinkstate::reference
