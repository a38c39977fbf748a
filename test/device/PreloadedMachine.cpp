//===- PreloadedMachine.cpp - The fake GPU under any program --------------===//
//
//   LD_PRELOAD=libss_fake_machine.so SS_FAKE_PACKAGES=FOLDER program ...
//
// Programs that open the fake driver then find the CPU code of kernels in it:
// of the package in FOLDER, or of every package in a folder of packages.
//
//===----------------------------------------------------------------------===//

#include "FakeKernels.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

__attribute__((constructor)) static void addKernels() {
  const char *folder = std::getenv("SS_FAKE_PACKAGES");
  if (!folder)
    return;
  try {
    std::vector<std::string> packages;
    if (std::filesystem::exists(std::string(folder) + "/manifest.json"))
      packages.push_back(folder);
    else
      for (const auto &entry : std::filesystem::directory_iterator(folder))
        packages.push_back(entry.path());
    sinkstate::test::addFakeKernels(packages);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "fake machine: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);
  }
}
