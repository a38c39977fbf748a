//===- SteadyState.cpp - Data as a request has it after many steps --------===//

#include "SteadyState.h"

#include <algorithm>
#include <cmath>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;
using sinkstate::runtime::PolicyKind;

namespace {

/// Of a token, before any noise: -log of the decay and, for layers whose
/// weight of a pair is the time step, that weight.
constexpr double kTimeStep = 0.0125;
/// More numbers than any vector has, and a prime, so that vectors which start
/// at multiples of their length do not repeat soon.
constexpr size_t kNormals = 1048583;

/// A state keeps its rank when what decays in a window stays above eps.
constexpr double kMargin = 1.5;

double thresholdOf(const sinkstate::runtime::Policy &policy) {
  return policy.kind == PolicyKind::Relative
             ? std::max(policy.value, 0x1p-20)
             : 1e-2;
}

/// How far keys and values lie from their directions. New components have
/// weights of about w d^2: below eps.
double noiseOf(double weight, double eps) {
  return std::min(0.2, 0.7 * std::sqrt(eps / weight));
}

} // namespace

const char *ss_bench::nameOf(DataKind kind) {
  return kind == DataKind::Synthetic ? "synthetic" : "random";
}

Result<DataKind> ss_bench::parseDataKind(const std::string &text) {
  if (text == "synthetic")
    return DataKind::Synthetic;
  if (text == "random")
    return DataKind::Random;
  return Error{"data '" + text + "', expected synthetic or random"};
}

SteadyState::SteadyState(const Layer &layer)
    : layer(layer), eps(thresholdOf(layer.policy)) {
  normals.resize(kNormals);
  std::normal_distribution<float> normal;
  for (float &x : normals)
    x = normal(random);
  keys.resize(size_t(layer.keyHeads) * size_t(layer.dk));
  values.resize(size_t(layer.heads) * size_t(layer.dv));
  for (int64_t head = 0; head < layer.keyHeads; ++head)
    randomUnit(&keys[size_t(head * layer.dk)], layer.dk);
  for (int64_t head = 0; head < layer.heads; ++head)
    randomUnit(&values[size_t(head * layer.dv)], layer.dv);
}

bool SteadyState::serves(const Layer &other) const {
  return layer.type == other.type && layer.heads == other.heads &&
         layer.keyHeads == other.keyHeads && layer.dv == other.dv &&
         layer.dk == other.dk && layer.hasBeta == other.hasBeta &&
         layer.channelDecay == other.channelDecay &&
         layer.denseForm == other.denseForm &&
         layer.deferred == other.deferred &&
         layer.sinkForm == other.sinkForm && layer.rank == other.rank &&
         layer.policy.kind == other.policy.kind &&
         layer.policy.value == other.policy.value;
}

void SteadyState::randomUnit(float *out, int64_t size) {
  double squares = 0;
  for (int64_t i = 0; i < size; ++i) {
    out[i] = normals[nextNormal];
    nextNormal = nextNormal + 1 == kNormals ? 0 : nextNormal + 1;
    squares += double(out[i]) * out[i];
  }
  for (int64_t i = 0; i < size; ++i)
    out[i] = float(out[i] / std::sqrt(squares));
}

void SteadyState::unitAside(float *out, const float *axis, int64_t size) {
  randomUnit(out, size);
  double along = 0;
  for (int64_t i = 0; i < size; ++i)
    along += double(out[i]) * axis[i];
  const double scale = 1 / std::sqrt(std::max(1 - along * along, 1e-6));
  for (int64_t i = 0; i < size; ++i)
    out[i] = float((out[i] - along * axis[i]) * scale);
}

void SteadyState::unitNear(float *out, const float *axis, double distance,
                           int64_t size) {
  unitAside(out, axis, size);
  const double scale = 1 / std::sqrt(1 + distance * distance);
  for (int64_t i = 0; i < size; ++i)
    out[i] = float((axis[i] + distance * out[i]) * scale);
}

const float *SteadyState::keyOf(int32_t keyHead) const {
  return &keys[size_t(keyHead) * size_t(layer.dk)];
}

const float *SteadyState::valueOf(int32_t head) const {
  return &values[size_t(head) * size_t(layer.dv)];
}

StepInputs SteadyState::inputs(DataKind kind, int32_t sets, int32_t requests) {
  StepInputs inputs{sets, requests, {}, {}, {}, {}, {}};
  const size_t tokens = size_t(sets) * size_t(requests);
  const size_t gates = size_t(layer.heads) * (layer.channelDecay ? layer.dk : 1);
  inputs.q.resize(tokens * size_t(layer.keyHeads) * size_t(layer.dk));
  inputs.k.resize(inputs.q.size());
  inputs.v.resize(tokens * size_t(layer.heads) * size_t(layer.dv));
  inputs.gate.resize(tokens * gates);
  inputs.beta.resize(tokens * size_t(layer.heads));
  const double weight = layer.hasBeta ? 0.5 : kTimeStep;
  const double noise = noiseOf(weight, eps);
  const bool near = kind == DataKind::Synthetic;
  // Where pairs weigh little, large values keep random ones above eps.
  const float length = near || layer.hasBeta ? 1.0f : 8.0f;
  float *q = inputs.q.data(), *k = inputs.k.data(), *v = inputs.v.data();
  for (size_t token = 0; token < tokens; ++token) {
    for (int32_t head = 0; head < layer.keyHeads; ++head) {
      unitNear(q, keyOf(head), 1, layer.dk);
      near ? unitNear(k, keyOf(head), noise, layer.dk)
           : randomUnit(k, layer.dk);
      q += layer.dk, k += layer.dk;
    }
    for (int32_t head = 0; head < layer.heads; ++head, v += layer.dv) {
      near ? unitNear(v, valueOf(head), noise, layer.dv)
           : randomUnit(v, layer.dv);
      std::for_each(v, v + layer.dv, [&](float &x) { x *= length; });
    }
  }
  std::normal_distribution<float> small(0, 0.1f);
  for (std::vector<float> *array : {&inputs.gate, &inputs.beta})
    for (float &x : *array)
      x = small(random);
  return inputs;
}

std::vector<float> SteadyState::aLog() const {
  return std::vector<float>(size_t(layer.heads), 0.0f);
}

std::vector<float> SteadyState::dtBias() const {
  // softplus of it is the time step.
  const float bias = float(std::log(std::expm1(kTimeStep)));
  const size_t gates = size_t(layer.heads) * (layer.channelDecay ? layer.dk : 1);
  return std::vector<float>(gates, bias);
}

std::vector<float> SteadyState::rows(int32_t slots, int64_t capacity) {
  const int64_t rowFloats = layer.dk + layer.dv;
  std::vector<float> rows(size_t(slots * layer.heads * capacity * rowFloats));
  float *row = rows.data();
  for (int32_t state = 0; state < slots * layer.heads; ++state) {
    const int32_t head = state % layer.heads;
    const float *key = keyOf(head / (layer.heads / layer.keyHeads));
    for (int64_t i = 0; i < capacity; ++i, row += rowFloats) {
      if (i == 0) {
        std::copy_n(key, layer.dk, row);
        std::copy_n(valueOf(head), layer.dv, row + layer.dk);
        continue;
      }
      unitAside(row, key, layer.dk);
      unitAside(row + layer.dk, valueOf(head), layer.dv);
    }
  }
  return rows;
}

void SteadyState::weights(int32_t rank, float *out) const {
  const double last = std::min(1.0, kMargin * eps);
  for (int32_t i = 0; i < rank; ++i)
    out[i] = rank == 1 ? 1.0f
                       : float(std::pow(last, double(i) / double(rank - 1)));
}
