//===- main.cpp - The long form: soak [steps] [seed] ----------------------===//

#include "Soak.h"

#include <cstdio>
#include <cstdlib>

using namespace sinkstate::soak;

int main(int argc, char **argv) {
  SoakOptions options;
  options.steps = argc > 1 ? std::atoll(argv[1]) : 100000;
  options.seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  options.progress = true;
  if (options.steps < 2) {
    std::fputs("usage: soak [steps, at least 2] [seed]\n", stderr);
    return EXIT_FAILURE;
  }
  // Half of the steps without a limit of memory, half with one.
  options.steps /= 2;
  for (bool pressure : {false, true}) {
    options.pressure = pressure;
    const SoakResult result = runSoak(options);
    std::printf("%s: %s\n", pressure ? "limited memory" : "plain",
                describe(result).c_str());
    if (!result.failure.empty()) {
      std::printf("FAILED: %s\n", result.failure.c_str());
      return EXIT_FAILURE;
    }
  }
  std::puts("clean");
  return EXIT_SUCCESS;
}
