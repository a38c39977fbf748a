//===- FakeMachine.cpp - The device tests on the fake GPU -----------------===//
//
// Tests the tests, and the CUDA engine over compiled kernels, where there is no
// GPU: a launch runs the CPU code of the same kernel.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "FakeKernels.h"
#include "PackageModels.h"

#include <cstdlib>

void sinkstate::test::prepareMachine() {
  setenv("SS_CUDA_DRIVER", SS_FAKE_CUDA, 1);
  setenv("SS_NVRTC", SS_FAKE_NVRTC, 1);
  setenv("SS_CACHE", "off", 1);
  fake_reset();
  addFakeKernels(packageFolders());
}
