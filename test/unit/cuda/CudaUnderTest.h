//===- CudaUnderTest.h - An engine on the fake GPU --------------*- C++ -*-===//
#ifndef SINKSTATE_UNIT_CUDAUNDERTEST_H
#define SINKSTATE_UNIT_CUDAUNDERTEST_H

#include "FakeCuda.h"
#include "ReferenceKernels.h"
#include "RequestDriver.h"
#include "UntilLanded.h"
#include "WaitUntil.h"

#include "sinkstate/sinkstate.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sinkstate::test {

using namespace sinkstate::reference;

/// A folder that is deleted at the end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string &path() const { return folder; }

private:
  std::string folder;
};

/// A package folder whose GPU sources carry the names of reference kernels,
/// and those kernels as the fake driver's.
class FakePackage {
public:
  explicit FakePackage(std::vector<LayerSpec> layers);

  const std::vector<LayerSpec> &layers() const { return kernels.layers(); }
  KernelSet &cpuKernels() { return kernels; }
  /// manifest.json, to be changed and written again.
  std::string manifest;
  void write() const;
  const std::string &folder() const { return temporary.path(); }
  void writeFile(const std::string &name, const std::string &content) const;

private:
  /// A reference kernel behind the parameters of a launch.
  struct Entry {
    ss_cpu_kernel run;
    size_t arguments;
  };
  static void runEntry(void *context, void *const *parameters, unsigned blocks);
  void registerKernels();

  KernelSet kernels;
  TemporaryFolder temporary;
  std::map<std::string, Entry> entries;
};

/// Fresh fake machine for every test, with the bookkeeping kernels.
class OnFakeGpu : public testing::Test {
protected:
  OnFakeGpu();

  static ss_engine_options cudaOptions(int32_t slots);
};

/// Requests whose states stay below their bound of rows without consolidation,
/// which a GPU does only where it is asked to.
inline RequestStyle lowRankStyle() {
  RequestStyle style;
  style.rank = 3;
  return style;
}

/// Every type and a layer of dense form; two rows active and small buffers, which are
/// staggered.
std::vector<LayerSpec> fourLayers(double eps = 1e-2);

/// Package, engine and driver on the fake GPU.
struct CudaUnderTest {
  CudaUnderTest(FakePackage &source, const ss_engine_options &options,
                bool withOracle = true)
      : package(Package::open(source.folder())), engine(package, options),
        driver(engine, source.layers(), withOracle) {}

  DrivenRequest request(const FakePackage &source, uint64_t seed) {
    DrivenRequest request(source.layers(), seed, lowRankStyle());
    request.slot = engine.allocateSlot();
    return request;
  }

  Package package;
  Engine engine;
  RequestDriver driver;
};

/// While it lives, other threads than the one that made it wait in calls of
/// this function, or launches of this kernel. Made after the engine, so that a
/// test that fails does not leave the engine's threads waiting.
class HeldCalls {
public:
  explicit HeldCalls(const char *name) : name(name) { fake_hold(name); }
  HeldCalls(const HeldCalls &) = delete;
  HeldCalls &operator=(const HeldCalls &) = delete;
  ~HeldCalls() { release(); }
  void release() { fake_release(name); }
  /// Decodes, 12 tokens at least, until another thread waits there. Compactions
  /// have to go on: one that consolidation sees too late waits for the next.
  void decodeUntilReached(CudaUnderTest &cuda, DrivenRequest &request) const;

private:
  const char *name;
};

} // namespace sinkstate::test

#endif
