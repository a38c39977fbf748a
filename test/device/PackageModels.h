//===- PackageModels.h - Packages that tests run on a GPU -------*- C++ -*-===//
//
// The packages named on the command line, and what a driver of requests has to
// know of their layers.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DEVICE_PACKAGEMODELS_H
#define SINKSTATE_DEVICE_PACKAGEMODELS_H

#include "ModelSpec.h"
#include "RandomRequest.h"

#include "sinkstate/sinkstate.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sinkstate::test {

/// Folders given on the command line.
std::vector<std::string> &packageFolders();

/// A package's folder as the name of its tests.
std::string packageName(const testing::TestParamInfo<std::string> &info);

/// Requests whose states have a few strong components and a tail.
reference::RequestStyle ordinaryStyle();

/// Called once, before anything looks for a GPU. On a real machine there is
/// nothing to do; the fake one takes the packages' CPU kernels for its own.
void prepareMachine();

/// The layers of a package as far as inputs depend on them: names, shapes and
/// decays. Normalisation and scales are inside the kernels.
std::vector<reference::LayerSpec> layersOf(const std::string &folder);

/// Why nothing can run on a GPU here; "" where it can.
std::string gpuUnavailable();

/// A test on every package of the command line; skipped where there is no GPU.
class OnGpu : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override;
  const std::string &folder() const { return GetParam(); }

  static ss_engine_options cudaOptions(int32_t slots);
};

} // namespace sinkstate::test

#endif
