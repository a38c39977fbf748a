//===- CpuTest.h - kernels from text, compiled and run ------------*- C++
//-*-===//
#ifndef SINKSTATE_TEST_UNIT_CODEGEN_CPU_CPUTEST_H
#define SINKSTATE_TEST_UNIT_CODEGEN_CPU_CPUTEST_H

#include "sinkstate/routines.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sinkstate::test {

/// What a test runs on: an instruction set of this machine and a width.
struct Target {
  std::string isa;
  int64_t vectorWidth;
};

/// Every level that this processor runs, and the host.
std::vector<Target> getTargets();
std::string getTargetName(const testing::TestParamInfo<Target> &info);

/// A module of kernels in this process.
class Kernels {
public:
  /// Fails the test if `text` does not parse or compile.
  Kernels(const std::string &text, const Target &target);
  ~Kernels();

  /// Runs programs [begin, end) of a kernel; `args` are its arguments.
  template <typename... Args>
  void run(const char *name, int64_t begin, int64_t end, Args... args) const {
    const void *pointers[] = {static_cast<const void *>(&args)..., nullptr};
    call(name, pointers, nullptr, begin, end);
  }
  template <typename... Args>
  void runWith(const ss_routine_table &routines, const char *name,
               int64_t begin, int64_t end, Args... args) const {
    const void *pointers[] = {static_cast<const void *>(&args)..., nullptr};
    call(name, pointers, &routines, begin, end);
  }

private:
  void call(const char *name, const void *const *args,
            const ss_routine_table *routines, int64_t begin, int64_t end) const;
  struct State;
  std::unique_ptr<State> state;
};

/// Compiles `text` for the host; the error's text, or "" if it compiles.
std::string getCompileError(const std::string &text);

/// Compiles `text` into a shared library; the error's text or "".
std::string writeLibrary(const std::string &text, const std::string &isa,
                         const std::string &path);

/// `text` with every ${name} replaced.
std::string
substitute(std::string text,
           std::vector<std::pair<std::string, std::string>> replacements);

inline std::string number(int64_t value) { return std::to_string(value); }

/// Numbers from [-1, 1), the same in every run.
template <typename T> std::vector<T> randomVector(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> distribution(-1.0, 1.0);
  std::vector<T> values(count);
  for (T &value : values)
    value = static_cast<T>(distribution(generator));
  return values;
}

class CpuTest : public testing::TestWithParam<Target> {};

} // namespace sinkstate::test

#endif // SINKSTATE_TEST_UNIT_CODEGEN_CPU_CPUTEST_H
