//===- Stopwatch.h - Adds the time of a scope to a counter ------*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_STOPWATCH_H
#define SINKSTATE_ENGINE_STOPWATCH_H

#include <chrono>

namespace sinkstate::runtime {

class Stopwatch {
public:
  explicit Stopwatch(double &seconds)
      : seconds(seconds), begin(std::chrono::steady_clock::now()) {}
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;
  ~Stopwatch() {
    seconds += std::chrono::duration<double>(
                   std::chrono::steady_clock::now() - begin)
                   .count();
  }

private:
  double &seconds;
  std::chrono::steady_clock::time_point begin;
};

} // namespace sinkstate::runtime

#endif
