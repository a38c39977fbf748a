//===- FakeGpuEngine.h - EngineUnderTest on the fake GPU --------*- C++ -*-===//
#ifndef SINKSTATE_UNIT_FAKEGPUENGINE_H
#define SINKSTATE_UNIT_FAKEGPUENGINE_H

#include "CudaUnderTest.h"
#include "HostSchedule.h"

namespace sinkstate::test {

inline ss_engine_options optionsFor(int32_t slots) {
  ss_engine_options options = engineOptions();
  options.slots = slots;
  options.device = SS_DEVICE_CUDA;
  return options;
}

/// What the fake driver has before any package.
struct FakeGpuMachine {
  FakeGpuMachine() { addHostKernels(); }
};

/// Kernels, package, engine and driver of one model.
struct EngineUnderTest : private FakeGpuMachine {
  explicit EngineUnderTest(std::vector<LayerSpec> layers,
                           const ss_engine_options &options = optionsFor(1),
                           bool withOracle = true)
      : source(std::move(layers)), kernels(source.cpuKernels()),
        package(Package::open(source.folder())), engine(package, options),
        driver(engine, kernels.layers(), withOracle) {}

  FakePackage source;
  KernelSet &kernels;
  Package package;
  Engine engine;
  RequestDriver driver;
};

} // namespace sinkstate::test

#endif
