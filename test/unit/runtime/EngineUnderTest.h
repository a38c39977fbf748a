//===- EngineUnderTest.h - An engine over reference kernels -----*- C++ -*-===//
#ifndef SINKSTATE_UNIT_ENGINEUNDERTEST_H
#define SINKSTATE_UNIT_ENGINEUNDERTEST_H

#include "ReferenceKernels.h"
#include "RequestDriver.h"

#include "sinkstate/sinkstate.hpp"

namespace sinkstate::test {

using namespace sinkstate::reference;

inline ss_engine_options optionsFor(int32_t slots) {
  ss_engine_options options = engineOptions();
  options.slots = slots;
  options.threads = 2;
  return options;
}

/// Kernels, package, engine and driver of one model.
struct EngineUnderTest {
  explicit EngineUnderTest(std::vector<LayerSpec> layers,
                           const ss_engine_options &options = optionsFor(1),
                           bool withOracle = true)
      : kernels(std::move(layers)),
        package(Package::fromMemory(kernels.manifest(), &KernelSet::lookup,
                                    &kernels)),
        engine(package, options),
        driver(engine, kernels.layers(), withOracle) {}

  /// A request that owns a slot.
  DrivenRequest request(uint64_t seed, RequestStyle style = RequestStyle()) {
    DrivenRequest request(kernels.layers(), seed, style);
    request.slot = engine.allocateSlot();
    return request;
  }

  KernelSet kernels;
  Package package;
  Engine engine;
  RequestDriver driver;
};

} // namespace sinkstate::test

#endif
