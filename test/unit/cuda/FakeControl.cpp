//===- FakeControl.cpp - How tests control the fake driver ----------------===//

#include "FakeCalls.h"

#include <chrono>
#include <cstdlib>

namespace sinkstate::test::fake {

Machine machine;
std::recursive_mutex machineMutex;
Held held;

Machine::Machine() {
  const char *seed = std::getenv("SS_FAKE_SHUFFLE");
  shuffles = seed && *seed;
  random.seed(shuffles ? unsigned(std::strtoul(seed, nullptr, 10)) : 0);
}

void Launch::run() {
  std::vector<void *> parameters;
  for (auto &value : values)
    parameters.push_back(value.data());
  if (machine.logs)
    machine.log += kernel->name + "\n";
  kernel->run(kernel->context, parameters.data(), blocks);
}

void waitWhileHeld(const std::string &name) {
  std::unique_lock<std::mutex> lock(held.mutex);
  auto isHeld = [&] {
    const auto found = held.by.find(name);
    return found != held.by.end() && found->second != std::this_thread::get_id();
  };
  if (!isHeld())
    return;
  ++held.waiting[name];
  held.changed.notify_all();
  held.changed.wait(lock, [&] { return !isHeld(); });
  --held.waiting[name];
}

} // namespace sinkstate::test::fake

using namespace sinkstate::test::fake;

namespace {

std::lock_guard<std::recursive_mutex> lockMachine() {
  return std::lock_guard<std::recursive_mutex>(machineMutex);
}

} // namespace

// Threads of an engine may be in the driver in any of these.
extern "C" {

void fake_reset(void) {
  contexts.clear(); // of this thread, as is the mode, which a lost context keeps
  captureMode = 0;
  const auto lock = lockMachine();
  for (void *pointer : machine.hostMemory)
    std::free(pointer);
  for (auto [pointer, bytes] : machine.memory)
    std::free(reinterpret_cast<void *>(pointer));
  machine = Machine();
}
void fake_set_version(int version) {
  const auto lock = lockMachine();
  machine.version = version;
}
void fake_set_device_count(int count) {
  const auto lock = lockMachine();
  machine.devices = count;
}
void fake_set_capability(int major, int minor) {
  const auto lock = lockMachine();
  machine.major = major;
  machine.minor = minor;
}
void fake_set_memory_limit(size_t bytes) {
  const auto lock = lockMachine();
  machine.limit = bytes;
}
void fake_set_granularity(size_t bytes) {
  const auto lock = lockMachine();
  machine.granularity = bytes;
}
void fake_hide(const char *symbol) {
  const auto lock = lockMachine();
  machine.hidden.insert(symbol);
}
void fake_fail(const char *symbol, int error, int skip, int sticky) {
  const auto lock = lockMachine();
  machine.failures[symbol] = {error, skip, sticky != 0};
}
void fake_fail_no_more(void) {
  const auto lock = lockMachine();
  machine.failures.clear();
}
void fake_add_kernel(const char *name, const size_t *sizes, size_t count,
                     fake_kernel run, void *context) {
  const auto lock = lockMachine();
  machine.kernels[name] = {name, {sizes, sizes + count}, run, context};
}
int fake_calls(const char *symbol) {
  const auto lock = lockMachine();
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
int fake_forbidden_calls(void) {
  const auto lock = lockMachine();
  return machine.forbidden;
}
int fake_live_objects(void) {
  const auto lock = lockMachine();
  int objects = int(machine.memory.size() + machine.hostMemory.size() +
                    machine.handles.size());
  for (auto &[kind, count] : machine.live)
    objects += count;
  return objects;
}
size_t fake_live_bytes(void) {
  const auto lock = lockMachine();
  return machine.used;
}
unsigned fake_last_blocks(void) {
  const auto lock = lockMachine();
  return machine.blocks;
}
void fake_watch(const char *kernel) {
  const auto lock = lockMachine();
  machine.watched = kernel;
  machine.watchedBlocks = machine.watchedThreads = 0;
  machine.watchedAttributes = 0;
}
unsigned fake_watched_blocks(void) {
  const auto lock = lockMachine();
  return machine.watchedBlocks;
}
unsigned fake_watched_threads(void) {
  const auto lock = lockMachine();
  return machine.watchedThreads;
}
unsigned fake_watched_attributes(void) {
  const auto lock = lockMachine();
  return machine.watchedAttributes;
}
void fake_shuffle(unsigned seed) {
  const auto lock = lockMachine();
  runQueue();
  machine.tails.clear();
  machine.shuffles = seed != 0;
  machine.random.seed(seed);
}
void fake_log(int logs) {
  const auto lock = lockMachine();
  machine.logs = logs != 0;
  machine.log.clear();
}
const char *fake_logged(void) {
  const auto lock = lockMachine();
  return machine.log.c_str();
}
unsigned fake_last_threads(void) {
  const auto lock = lockMachine();
  return machine.threads;
}
unsigned fake_last_shared(void) {
  const auto lock = lockMachine();
  return machine.shared;
}
}
