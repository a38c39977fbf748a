//===- StateView.h - One state as components in float64 ---------*- C++ -*-===//
#ifndef SINKSTATE_REFERENCE_STATEVIEW_H
#define SINKSTATE_REFERENCE_STATEVIEW_H

#include "LayerMath.h"

#include <cstdint>

namespace sinkstate::reference {

/// The tables of one layer, as kernels get them.
struct StateTables {
  float *rows, *weights;
  const int64_t *rowBase;
  int32_t *rank, *status;
  const int32_t *count;
  float *bufferK, *bufferU, *bufferG;
};

/// weight * u v^T
struct Component {
  double weight;
  Vector v; ///< [dk]
  Vector u; ///< [dv]
};

/// One state of a layer, with the addresses of its parts.
class StateView {
public:
  StateView(const LayerSpec &layer, const StateTables &tables, int64_t state,
            int32_t countAhead = 0);

  int32_t count() const { return tables.count[slot] + countAhead; }
  int32_t rank() const { return tables.rank[state]; }
  bool isDense() const { return rank() < 0; }
  int32_t &rankRef() const { return tables.rank[state]; }
  int32_t &statusRef() const { return tables.status[state]; }
  float *row(int64_t i) const {
    return tables.rows +
           (tables.rowBase[state] + i) * int64_t(layer.dk + layer.dv);
  }
  float &weight(int64_t i) const {
    return tables.weights[tables.rowBase[state] + i];
  }
  float *key(int64_t pair) const;
  float *update(int64_t pair) const;
  float *logDecay(int64_t pair) const;
  int64_t decayChannels() const { return layer.channelDecay() ? layer.dk : 1; }

  /// Running log-decay after all buffered pairs; zero where there are none.
  Vector runningDecay() const;

  /// Stored components with their decay in them, at running log-decay `g`.
  std::vector<Component> stored(const Vector &g) const;
  std::vector<Component> buffered(const Vector &g) const;

  /// H [dk, dv] at running log-decay `g`, in the orientation of dense states.
  Vector matrix(const Vector &g) const;

private:
  double channel(const Vector &g, int64_t c) const {
    return g[g.size() == 1 ? 0 : size_t(c)];
  }
  void applyDecay(Component &component, const Vector &logDecay) const;

  const LayerSpec &layer;
  const StateTables &tables;
  int64_t state, slot, head, pairs;
  int32_t countAhead;
};

} // namespace sinkstate::reference

#endif
