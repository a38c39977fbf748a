//===- PreloadedMachine.cpp - The fake GPU under any program --------------===//
//
//   LD_PRELOAD=libss_fake_machine.so SS_FAKE_PACKAGES=FOLDER program ...
//
// Programs that open the fake driver then find the CPU code of kernels in it:
// of the package in FOLDER, or of every package in a folder of packages.
// SS_FAKE_MEMORY and SS_FAKE_GRANULARITY: bytes that it has (8 GiB), and bytes that
// it maps at a time (4096; GPUs: 2097152).
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "FakeKernels.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

static void setBytes(const char *variable, void (*set)(size_t)) {
  if (const char *text = std::getenv(variable))
    set(std::strtoull(text, nullptr, 10));
}

__attribute__((constructor)) static void addKernels() {
  setBytes("SS_FAKE_MEMORY", fake_set_memory_limit);
  setBytes("SS_FAKE_GRANULARITY", fake_set_granularity);
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
