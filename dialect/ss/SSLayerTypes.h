//===- SSLayerTypes.h - What distinguishes the layer types ------*- C++ -*-===//
#ifndef SINKSTATE_DIALECT_SS_SSLAYERTYPES_H
#define SINKSTATE_DIALECT_SS_SSLAYERTYPES_H

#include "dialect/ss/SSEnums.h"

namespace sinkstate::ss {

/// One recurrence: H <- H diag(a) (I - theta w k k^T) + w v k^T, y = H q.
struct LayerTypeInfo {
  LayerType type;
  /// 1: the delta rule, which subtracts what the state already returns for k.
  int theta;
  /// True if the decay has one value per key channel instead of one per head.
  bool channelDecay;
  /// True if the weight of a pair is sigmoid(beta) of an own input; otherwise
  /// it is the time step softplus(gate + dt_bias).
  bool hasBeta;
  GateKind defaultGate;
  CoreKind defaultCore;
};

const LayerTypeInfo &getLayerTypeInfo(LayerType type);

} // namespace sinkstate::ss

#endif // SINKSTATE_DIALECT_SS_SSLAYERTYPES_H
