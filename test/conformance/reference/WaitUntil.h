//===- WaitUntil.h - For what other threads do ------------------*- C++ -*-===//
#ifndef SINKSTATE_REFERENCE_WAITUNTIL_H
#define SINKSTATE_REFERENCE_WAITUNTIL_H

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace sinkstate::test {

/// Enough for what another thread is to do, on the slowest machine: a test ends
/// and says so where that never happens, and nowhere else.
constexpr std::chrono::minutes kPatience{5};

/// Throws where it is not so in the end. `what` as in "waited for WHAT".
template <typename Condition>
void waitUntil(const std::string &what, const Condition &isSo) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!isSo()) {
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("waited for " + what + " in vain, " +
                               std::to_string(kPatience.count()) + " minutes");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace sinkstate::test

#endif
