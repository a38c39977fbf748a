//===- Crossings.cpp - What is done to states between steps ---------------===//

#include "Crossings.h"

#include <utility>

using namespace sinkstate;
using namespace sinkstate::reference;

std::vector<LayerSpec> reference::crossingLayers(int32_t draft, size_t before) {
  std::vector<LayerSpec> layers =
      numbered({gdnLayer(4, 2, 24, 16), mamba2Layer(2, 1, 16, 24), kdaLayer(2, 2, 16, 16)});
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].active = 2;
    layers[i].buffer = i == 1 ? 3 : 4;
    layers[i].draft = draft;
    layers[i].phase = int32_t(i) % layers[i].buffer;
    layers[i].policyValue = 1e-2;
  }
  layers[before].before = true;
  return layers;
}

void reference::initialise(Engine &engine, const std::vector<LayerSpec> &layers,
                      int32_t slot) {
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerSpec &spec = layers[layer];
    std::vector<float> dense(size_t(spec.heads * spec.dv * spec.dk));
    for (int64_t head = 0; head < spec.heads; ++head)
      for (int64_t i = 0; i < 5; ++i)
        dense[size_t((head * spec.dv + i) * spec.dk + i)] = float(1 + i);
    const ss_dense_layout packed = {sizeof packed, 0, 0, 0, 0, 0};
    const ss_init_options options = {sizeof options, 1e-6f, 0};
    check(ss_state_init(engine.get(), int32_t(layer), &slot, nullptr, 1,
                        dense.data(), &packed, &options, nullptr));
  }
}

void reference::joinHalves(Engine &engine, const std::vector<LayerSpec> &layers,
                      int32_t slot, int32_t other) {
  const auto bytes = engine.snapshot(other);
  std::vector<ss_head_range> lower, upper;
  for (const LayerSpec &layer : layers) {
    const int32_t half = layer.heads / 2;
    lower.push_back({0, 0, half});
    upper.push_back({half, half, half});
  }
  engine.resetSlot(slot);
  engine.restoreHeads(slot, bytes, upper);
  engine.restoreHeads(slot, bytes, lower);
}

Crossed::Crossed(Engine &engine, RequestDriver &driver,
                 std::vector<LayerSpec> layers, RequestStyle style)
    : engine(engine), driver(driver), layers(std::move(layers)),
      style(std::move(style)) {
  for (int i = 0; i < 4; ++i)
    requests.push_back(fresh(engine.allocateSlot()));
}

DrivenRequest Crossed::fresh(int32_t slot) {
  DrivenRequest request(layers, ++seed, style);
  request.slot = slot;
  return request;
}

/// The oracle of `to` becomes that of `from`.
void Crossed::equate(size_t from, size_t to) {
  const int32_t slot = requests[to].slot;
  requests[to] = requests[from];
  requests[to].slot = slot;
}

void Crossed::rollBack(DrivenRequest &request) {
  const DrivenRequest before = request;
  driver.step({&request});
  if (engine.rollbackRoom(request.slot) < 1)
    return;
  engine.rollback(request.slot, 1);
  request = before;
}

void Crossed::change(unsigned which, size_t from, size_t to) {
  DrivenRequest &request = requests[to];
  switch (which) {
  case 0:
    engine.resetSlot(request.slot);
    request = fresh(request.slot);
    break;
  case 1:
    engine.fork(requests[from].slot, request.slot);
    equate(from, to);
    break;
  case 2:
    engine.restore(request.slot, engine.snapshot(requests[from].slot));
    equate(from, to);
    break;
  case 3:
    engine.freeSlot(request.slot);
    engine.tend();
    request = fresh(engine.allocateSlot());
    break;
  case 4:
    joinHalves(engine, layers, request.slot, requests[from].slot);
    equate(from, to);
    break;
  default:
    rollBack(request);
  }
}

void Crossed::run(int steps) {
  for (int step = 0; step < steps; ++step) {
    engine.tend(); // as between replays of a graph
    const size_t first = random() % 4, second = (first + 1 + random() % 3) % 4;
    if (step % 4 == 1)
      driver.step({&requests[first]});
    else
      driver.step({&requests[first], &requests[second]});
    if (step % 3 == 2)
      change(random() % 7, first, second);
    if (step % 7 == 6)
      engine.synchronize();
  }
  engine.synchronize();
}
