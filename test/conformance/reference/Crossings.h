//===- Crossings.h - What is done to states between steps -------*- C++ -*-===//
//
// For tests of whatever changes states outside a step, during a consolidation of
// them, on every device.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_CROSSINGS_H
#define SINKSTATE_REFERENCE_CROSSINGS_H

#include "RequestDriver.h"

#include "sinkstate/sinkstate.hpp"

#include <random>
#include <string>
#include <vector>

namespace sinkstate::reference {

/// A layer of each type, all of which compact often; layer `before` does so before
/// its tokens.
std::vector<LayerSpec> crossingLayers(int32_t draft, size_t before);

/// Makes every state of a slot a matrix of rank 5.
void initialise(Engine &engine, const std::vector<LayerSpec> &layers, int32_t slot);

/// All heads from another slot, first the upper half of every layer.
void joinHalves(Engine &engine, const std::vector<LayerSpec> &layers, int32_t slot,
                int32_t other);

/// Four requests of an engine, and what is done to them between steps.
class Crossed {
public:
  Crossed(Engine &engine, RequestDriver &driver, std::vector<LayerSpec> layers,
          RequestStyle style);

  /// Steps of one or two requests, with a random change after every third one and
  /// nothing under way after every seventh.
  void run(int steps);
  std::vector<DrivenRequest> &all() { return requests; }

private:
  DrivenRequest fresh(int32_t slot);
  void equate(size_t from, size_t to);
  void rollBack(DrivenRequest &request);
  void change(unsigned which, size_t from, size_t to);

  Engine &engine;
  RequestDriver &driver;
  std::vector<LayerSpec> layers;
  RequestStyle style;
  uint64_t seed = 100;
  std::mt19937 random{7};
  std::vector<DrivenRequest> requests;
};

} // namespace sinkstate::reference

#endif // SINKSTATE_REFERENCE_CROSSINGS_H
