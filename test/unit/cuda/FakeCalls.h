//===- FakeCalls.h - What every call of the fake driver does ----*- C++ -*-===//
#ifndef SINKSTATE_UNIT_FAKECALLS_H
#define SINKSTATE_UNIT_FAKECALLS_H

#include "FakeMachine.h"

namespace sinkstate::test::fake {

/// At the beginning of a call, or a launch of a kernel.
void waitWhileHeld(const std::string &name);
/// Counts a call and says whether it fails.
CUresult enter(const char *symbol, bool allowedInCapture = true);
/// Of a call that CUDA forbids in a capture whatever the thread's mode is.
CUresult forbid();
/// Of this thread: calls that a capture forbids are the capturing thread's.
extern thread_local int captureMode;
extern thread_local std::vector<CUcontext> contexts;

/// Runs everything that is queued.
void runQueue();
/// The driver's functions of streams, events, graphs, launches and copies.
const std::map<std::string, void *> &streamFunctions();

} // namespace sinkstate::test::fake

// Functions are named fakeX, so that __func__ + 4 is the driver's cuX.
#define ENTER(...)                                                             \
  waitWhileHeld(__func__ + 4);                                                 \
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);             \
  if (CUresult failed = enter(__func__ + 4 __VA_OPT__(, ) __VA_ARGS__))        \
  return failed

// Of calls that give something back: refused ones do nothing, but that a lost
// context takes everything with it.
#define ENTER_RELEASE(...)                                                     \
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);             \
  const CUresult lost = enter(__func__ + 4 __VA_OPT__(, ) __VA_ARGS__);        \
  if (lost != kSuccess && lost != machine.lost)                                \
  return lost

#define FUNCTION(NAME)                                                         \
  { #NAME, reinterpret_cast<void *>(&fake##NAME) }

#endif
