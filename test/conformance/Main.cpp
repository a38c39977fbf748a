//===- Main.cpp - The suite's command line --------------------------------===//
//
//   conformance_tests                      the float64 reference kernels
//   conformance_tests --packages FOLDER    and packages, on the CPU and a GPU
//
// FOLDER is what conformance_packages wrote, on whatever machine.
//
//===----------------------------------------------------------------------===//

#include "BackEnd.h"
#ifdef SS_CONFORMANCE_COMPILED
#include "CompiledBackEnd.h"
#endif

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <exception>

using namespace sinkstate::conformance;

namespace {

/// Takes `--packages FOLDER` out of the arguments. False: no folder given.
bool takePackagesOption(int &argc, char **argv, std::string &folder) {
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--packages") != 0) {
      argv[kept++] = argv[i];
      continue;
    }
    if (i + 1 == argc)
      return false;
    folder = argv[++i];
  }
  argc = kept;
  return true;
}

void registerBackEnds(const std::string &packages) {
#ifdef SS_CONFORMANCE_COMPILED
  registerBackEnd(makeCompiledBackEnd());
#else
  registerBackEnd(makeReferenceBackEnd());
#endif
  if (!packages.empty())
    registerBackEnd(makePackagesBackEnd(packages));
#ifndef SS_CONFORMANCE_COMPILED
  registerBackEnd(makeCudaBackEnd(packages));
#endif
}

} // namespace

int main(int argc, char **argv) {
  std::string packages;
  if (!takePackagesOption(argc, argv, packages)) {
    std::fprintf(stderr, "conformance: --packages has no value, expected the "
                         "folder that conformance_packages wrote\n");
    return 2;
  }
  try {
    registerBackEnds(packages);
  } catch (const std::exception &exception) {
    std::fprintf(stderr, "conformance: %s\n", exception.what());
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  for (const std::unique_ptr<BackEnd> &backEnd : backEnds())
    backEnd->close();
  return code;
}
