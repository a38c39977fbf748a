//===- ss-cache.cpp - Look at and tidy the kernel cache -------------------===//

#include "Commands.h"
#include "Options.h"

#include <iostream>

int main(int argc, char **argv) {
  using namespace ss_cache;
  sinkstate::Result<Options> options = parseOptions(argc, argv);
  if (!options) {
    std::cerr << "ss-cache: " << options.error() << "\n";
    return kWrongUse;
  }
  return run(*options, std::cout, std::cerr);
}
