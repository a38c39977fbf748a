//===- FakeControl.cpp - How tests control the fake driver ----------------===//

#include "FakeMachine.h"

#include <chrono>
#include <cstdlib>

namespace sinkstate::test::fake {

Machine machine;
std::recursive_mutex machineMutex;
Held held;

void Launch::run() {
  std::vector<void *> parameters;
  for (auto &value : values)
    parameters.push_back(value.data());
  if (machine.logs)
    machine.log += kernel->name + "\n";
  kernel->run(kernel->context, parameters.data(), blocks);
}

} // namespace sinkstate::test::fake

using namespace sinkstate::test::fake;

extern "C" {

void fake_reset(void) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  for (void *pointer : machine.hostMemory)
    std::free(pointer);
  for (auto [pointer, bytes] : machine.memory)
    std::free(reinterpret_cast<void *>(pointer));
  machine = Machine();
}
void fake_set_version(int version) { machine.version = version; }
void fake_set_device_count(int count) { machine.devices = count; }
void fake_set_capability(int major, int minor) {
  machine.major = major;
  machine.minor = minor;
}
void fake_set_memory_limit(size_t bytes) { machine.limit = bytes; }
void fake_set_granularity(size_t bytes) { machine.granularity = bytes; }
void fake_hide(const char *symbol) { machine.hidden.insert(symbol); }
void fake_fail(const char *symbol, int error, int skip, int sticky) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  machine.failures[symbol] = {error, skip, sticky != 0};
}
void fake_fail_no_more(void) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  machine.failures.clear();
}
void fake_add_kernel(const char *name, const size_t *sizes, size_t count,
                     fake_kernel run, void *context) {
  machine.kernels[name] = {name, {sizes, sizes + count}, run, context};
}
int fake_calls(const char *symbol) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  return machine.calls[symbol];
}
void fake_hold(const char *name) {
  std::lock_guard<std::mutex> lock(held.mutex);
  held.by[name] = std::this_thread::get_id();
}
void fake_release(const char *name) {
  std::lock_guard<std::mutex> lock(held.mutex);
  held.by.erase(name);
  held.changed.notify_all();
}
int fake_is_waited_in(const char *name, int milliseconds) {
  std::unique_lock<std::mutex> lock(held.mutex);
  return held.changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                               [&] { return held.waiting[name] > 0; });
}
int fake_forbidden_calls(void) { return machine.forbidden; }
int fake_live_objects(void) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  int objects = int(machine.memory.size() + machine.hostMemory.size() +
                    machine.handles.size());
  for (auto &[kind, count] : machine.live)
    objects += count;
  return objects;
}
size_t fake_live_bytes(void) { return machine.used; }
unsigned fake_last_blocks(void) { return machine.blocks; }
void fake_watch(const char *kernel) {
  machine.watched = kernel;
  machine.watchedBlocks = machine.watchedThreads = 0;
  machine.watchedAttributes = 0;
}
unsigned fake_watched_blocks(void) { return machine.watchedBlocks; }
unsigned fake_watched_threads(void) { return machine.watchedThreads; }
unsigned fake_watched_attributes(void) { return machine.watchedAttributes; }
void fake_log(int logs) {
  machine.logs = logs != 0;
  machine.log.clear();
}
const char *fake_logged(void) { return machine.log.c_str(); }
unsigned fake_last_threads(void) { return machine.threads; }
unsigned fake_last_shared(void) { return machine.shared; }
}
