//===- main.cpp - The long form: soak [steps] [seed] ----------------------===//

#include "Soak.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace sinkstate::soak;

template <typename T> static bool parse(const char *text, T &value) {
  const char *end = text + std::strlen(text);
  const auto [next, error] = std::from_chars(text, end, value);
  return error == std::errc() && next == end;
}

int main(int argc, char **argv) {
  SoakOptions options;
  options.steps = 100000;
  options.seed = 1;
  options.progress = true;
  if (argc > 3 || (argc > 1 && !parse(argv[1], options.steps)) ||
      (argc > 2 && !parse(argv[2], options.seed)) || options.steps < 2) {
    std::fputs("soak: wrong arguments, expected [steps, at least 2] [seed], "
               "both whole numbers\n",
               stderr);
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
