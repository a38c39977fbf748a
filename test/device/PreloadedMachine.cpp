//===- PreloadedMachine.cpp - The fake GPU under any program --------------===//
//
//   LD_PRELOAD=libss_fake_machine.so SS_FAKE_PACKAGE=FOLDER program ...
//
// Programs that open the fake driver then find the CPU code of the package's
// kernels in it.
//
//===----------------------------------------------------------------------===//

#include "FakeKernels.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

__attribute__((constructor)) static void addKernels() {
  const char *folder = std::getenv("SS_FAKE_PACKAGE");
  if (!folder)
    return;
  try {
    sinkstate::test::addFakeKernels({folder});
  } catch (const std::exception &error) {
    std::fprintf(stderr, "fake machine: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);
  }
}
