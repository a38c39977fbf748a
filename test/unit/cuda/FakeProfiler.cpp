//===- FakeProfiler.cpp - A profiler that counts ranges -------------------===//
//
// Attaches as NVIDIA's injection libraries do: by the tables of callbacks that
// the process exports, whose sizes it checks first.
//
//===----------------------------------------------------------------------===//

#include "FakeProfiler.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::map<std::string, int> pushed;
std::atomic<int> popped, unbalanced, old, attached, refuse;
thread_local int depth = 0;

int push(const char *name) {
  std::lock_guard lock(mutex);
  ++pushed[name];
  return depth++;
}
int pop() {
  ++popped;
  if (depth == 0)
    ++unbalanced;
  return --depth;
}

using Function = void (*)();
struct Callbacks {
  size_t size;
  int (*functions)(int module, Function ***table, unsigned *count);
};
struct Version {
  size_t size;
  uint32_t version, reserved;
  void (*set)(uint32_t);
};

} // namespace

extern "C" {

int fake_profiler_pushed(const char *name) {
  std::lock_guard lock(mutex);
  if (name)
    return pushed[name];
  int sum = 0;
  for (auto &[key, count] : pushed)
    sum += count;
  return sum;
}
int fake_profiler_popped(void) { return popped; }
int fake_profiler_unbalanced(void) { return unbalanced; }
int fake_profiler_old(void) { return old; }
int fake_profiler_attached(void) { return attached; }
void fake_profiler_refuse(int answer) { refuse = answer; }

int nvtxRangePushA(const char *) { return ++old; }
int nvtxRangePop(void) { return 0; }

int InitializeInjectionNvtx2(const void *(*table)(uint32_t)) {
  const auto *version = static_cast<const Version *>(table(3));
  const auto *callbacks = static_cast<const Callbacks *>(table(1));
  if (refuse || !version || version->size < sizeof(Version) ||
      version->version != 3 || !callbacks ||
      callbacks->size < sizeof(Callbacks) || table(0) || table(2))
    return 0;
  version->set(3);
  // Every module of the headers is there, and all its functions.
  const unsigned sizes[] = {0, 16, 9, 15, 7, 16, 7};
  for (int module = 1; module < 7; ++module) {
    Function **functions = nullptr;
    unsigned count = 0;
    if (!callbacks->functions(module, &functions, &count) ||
        count != sizes[module] || functions[0] || functions[count])
      return 0;
    for (unsigned i = 1; i < count; ++i)
      if (!functions[i])
        return 0;
    if (module != 1)
      continue;
    *functions[9] = reinterpret_cast<Function>(push);
    *functions[11] = reinterpret_cast<Function>(pop);
  }
  if (callbacks->functions(0, nullptr, nullptr) ||
      callbacks->functions(7, nullptr, nullptr))
    return 0;
  ++attached;
  return 1;
}
}
