//===- FakeStreams.cpp - Streams, events and graphs without a GPU ---------===//
//
// Work runs when it is queued, and what is captured in one order of those that its
// dependences allow. Shuffled, it waits in queues until somebody waits for it, and
// runs in a random order of those that streams and events allow; so do graphs.
//
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace sinkstate::test::fake {
namespace {

constexpr bool kNotInCapture = false;
constexpr CUresult kErrorInvalidHandle = 400;

/// Those that CUDA itself has are null, and the numbers below.
bool isStream(CUstream stream) {
  constexpr uintptr_t kPerThread = 2;
  return reinterpret_cast<uintptr_t>(stream) <= kPerThread ||
         machine.streams.count(stream) > 0;
}

/// Null where a stream takes no part in a capture.
Captured *capturedStream(CUstream stream) {
  auto found = machine.captured.find(stream);
  return found == machine.captured.end() ? nullptr : &found->second;
}

bool isQueued(size_t id) { return machine.queue.count(id) > 0; }

/// The legacy stream comes after all that blocks for it, and the other way round.
Tail tailOf(CUstream stream) {
  Tail tail = machine.tails[stream];
  auto add = [&](CUstream other) {
    const Tail &more = machine.tails[other];
    tail.insert(more.begin(), more.end());
  };
  if (!stream)
    std::for_each(machine.blocking.begin(), machine.blocking.end(), add);
  else if (machine.blocking.count(stream))
    add(nullptr);
  return tail;
}

/// Queues work that is not captured, or runs it.
void submit(CUstream stream, std::function<void()> work) {
  if (!machine.shuffles)
    return work();
  const size_t id = ++machine.lastQueued;
  machine.queue[id] = {tailOf(stream), std::move(work)};
  machine.tails[stream] = {id};
}

bool isReady(const Queued &work) {
  return std::none_of(work.after.begin(), work.after.end(), isQueued);
}

void runOne(size_t id) {
  auto work = std::move(machine.queue.at(id).run);
  machine.queue.erase(id);
  work();
}

/// Runs what is queued up to these, and some of the rest.
void runUpTo(const Tail &last) {
  Tail needed;
  std::vector<size_t> found(last.begin(), last.end());
  while (!found.empty()) {
    const size_t id = found.back();
    found.pop_back();
    if (!isQueued(id) || !needed.insert(id).second)
      continue;
    const Tail &after = machine.queue.at(id).after;
    found.insert(found.end(), after.begin(), after.end());
  }
  while (!needed.empty()) {
    std::vector<size_t> ready;
    const bool any = machine.random() % 4 == 0;
    for (const auto &[id, work] : machine.queue)
      if ((any || needed.count(id)) && isReady(work))
        ready.push_back(id);
    const size_t id = ready[machine.random() % ready.size()];
    runOne(id);
    // A kernel may call the driver, which runs more.
    std::erase_if(needed, [](size_t one) { return !isQueued(one); });
  }
}

/// Launches of a graph, in an order that it allows.
void runGraph(Recording launches) {
  if (!machine.shuffles) {
    for (Launch &launch : launches)
      launch.run();
    return;
  }
  std::map<size_t, Launch *> left;
  for (Launch &launch : launches)
    left[launch.id] = &launch;
  while (!left.empty()) {
    std::vector<size_t> ready;
    for (const auto &[id, launch] : left)
      if (std::none_of(launch->after.begin(), launch->after.end(),
                       [&](size_t before) { return left.count(before) > 0; }))
        ready.push_back(id);
    const size_t id = ready[machine.random() % ready.size()];
    left.at(id)->run();
    left.erase(id);
  }
}

const std::string &nameOf(CUfunction function) {
  return reinterpret_cast<const Kernel *>(function)->name;
}
CUresult fakecuLaunchKernel(CUfunction function, unsigned gridX, unsigned,
                            unsigned, unsigned blockX, unsigned, unsigned,
                            unsigned shared, CUstream stream,
                            void **parameters, void **) {
  waitWhileHeld(nameOf(function));
  ENTER();
  if (!isStream(stream))
    return kErrorInvalidHandle;
  if (shared > reinterpret_cast<const Kernel *>(function)->dynamicShared)
    return 1;
  if (gridX == 0 || blockX == 0 || blockX > 1024)
    return 1;
  auto *kernel = reinterpret_cast<const Kernel *>(function);
  Launch launch{kernel, {}, gridX, 0, {}};
  for (size_t i = 0; i < kernel->sizes.size(); ++i) {
    auto *bytes = static_cast<const std::byte *>(parameters[i]);
    launch.values.emplace_back(bytes, bytes + kernel->sizes[i]);
  }
  machine.blocks = gridX;
  if (kernel->name == machine.watched) {
    machine.watchedBlocks = gridX;
    machine.watchedThreads = blockX;
  }
  machine.threads = blockX;
  machine.shared = shared;
  if (Captured *captured = capturedStream(stream)) {
    ++captured->work;
    launch.id = ++machine.lastQueued;
    launch.after = std::exchange(captured->tail, {launch.id});
    (stream == machine.capturing ? *machine.recording : captured->launches)
        .push_back(std::move(launch));
  } else {
    submit(stream, [launch = std::move(launch)]() mutable { launch.run(); });
  }
  return kSuccess;
}
CUresult fakecuLaunchKernelEx(const CUlaunchConfig *config,
                              CUfunction function, void **parameters,
                              void **extra) {
  { // cuLaunchKernel has a lock of its own
    ENTER();
  }
  for (unsigned i = 0; i < config->attributeCount; ++i)
    if (config->attributes[i].id != kLaunchBesideEnd)
      return 1;
  const CUresult result = fakecuLaunchKernel(
      function, config->gridX, config->gridY, config->gridZ, config->blockX,
      config->blockY, config->blockZ, config->sharedBytes, config->stream,
      parameters, extra);
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  if (result == kSuccess && reinterpret_cast<const Kernel *>(function)->name ==
                                machine.watched)
    machine.watchedAttributes = config->attributeCount;
  return result;
}
/// Memory of the host that is not pinned is read before the call returns.
CUresult fakecuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                               CUstream stream) {
  ENTER(kNotInCapture);
  if (!isStream(stream))
    return kErrorInvalidHandle;
  if (capturedStream(stream))
    return forbid();
  auto *bytesOf = static_cast<const std::byte *>(from);
  const auto next = machine.hostMemory.upper_bound(const_cast<void *>(from));
  const bool pinned = next != machine.hostMemory.begin() &&
                      static_cast<std::byte *>(*std::prev(next)) +
                              machine.hostBytes.at(*std::prev(next)) >
                          bytesOf;
  std::vector<std::byte> copy;
  if (!pinned)
    copy.assign(bytesOf, bytesOf + bytes);
  submit(stream, [=, copy = std::move(copy)] {
    std::memcpy(reinterpret_cast<void *>(to), pinned ? from : copy.data(),
                bytes);
  });
  return kSuccess;
}
CUresult fakecuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                               CUstream stream) {
  ENTER(kNotInCapture);
  if (!isStream(stream))
    return kErrorInvalidHandle;
  if (capturedStream(stream))
    return forbid();
  submit(stream, [=] {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  });
  return kSuccess;
}
CUresult fakecuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                             CUstream stream) {
  ENTER();
  if (!isStream(stream))
    return kErrorInvalidHandle;
  submit(stream, [=] {
    std::memset(reinterpret_cast<void *>(to), value, bytes);
  });
  return kSuccess;
}
CUresult fakecuStreamCreate(CUstream *stream, unsigned flags) {
  ENTER(kNotInCapture);
  static uintptr_t next = 0x3000;
  ++machine.live["stream"];
  *stream = reinterpret_cast<CUstream>(next++);
  machine.streams.insert(*stream);
  if (!(flags & kStreamNonBlocking))
    machine.blocking.insert(*stream);
  return kSuccess;
}
CUresult fakecuStreamCreateWithPriority(CUstream *stream, unsigned flags,
                                        int priority) {
  ENTER(kNotInCapture);
  return priority < -5 || priority > 0 ? 1 : fakecuStreamCreate(stream, flags);
}
CUresult fakecuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER();
  if (!isStream(stream) || !machine.events.count(event))
    return kErrorInvalidHandle;
  const Mark mark = machine.events[event];
  Captured *captured = capturedStream(stream);
  if (mark.capture && (!machine.recording || mark.capture != machine.captures))
    return captured ? kErrorCaptureIsolation : kErrorCapturedEvent;
  if (captured && !mark.capture)
    return kErrorCaptureIsolation;
  if (!mark.capture) {
    machine.tails[stream].insert(mark.tail.begin(), mark.tail.end());
    return kSuccess;
  }
  if (!captured)
    captured = &machine.captured[stream];
  ++captured->work;
  captured->tail.insert(mark.tail.begin(), mark.tail.end());
  Captured &other = machine.captured[mark.stream];
  other.joined = mark.work;
  std::move(other.launches.begin(), other.launches.end(),
            std::back_inserter(*machine.recording));
  other.launches.clear();
  return kSuccess;
}
CUresult fakecuStreamDestroy(CUstream stream) {
  ENTER_RELEASE();
  if (capturedStream(stream))
    return forbid();
  if (machine.streams.erase(stream) == 0)
    return kErrorInvalidHandle;
  --machine.live["stream"];
  return lost;
}
CUresult fakecuStreamSynchronize(CUstream stream) {
  ENTER(kNotInCapture);
  if (!isStream(stream))
    return kErrorInvalidHandle;
  if (capturedStream(stream))
    return forbid();
  runUpTo(tailOf(stream));
  return kSuccess;
}
CUresult fakecuCtxSynchronize() {
  ENTER(kNotInCapture);
  if (machine.recording) // also where the thread ignores captures
    return forbid();
  runQueue();
  return kSuccess;
}
CUresult fakecuStreamGetCaptureInfo(CUstream stream, int *status,
                                    unsigned long long *id, CUgraph *,
                                    const void **, size_t *) {
  ENTER();
  if (!isStream(stream))
    return kErrorInvalidHandle;
  *status = machine.recording && capturedStream(stream);
  *id = *status ? machine.captures : 0;
  return kSuccess;
}
CUresult fakecuStreamIsCapturing(CUstream stream, int *status) {
  ENTER();
  if (!isStream(stream))
    return kErrorInvalidHandle;
  *status = machine.recording && capturedStream(stream);
  return kSuccess;
}
CUresult fakecuThreadExchangeStreamCaptureMode(int *mode) {
  ENTER();
  std::swap(*mode, captureMode);
  return kSuccess;
}
CUresult fakecuStreamBeginCapture(CUstream stream, int) {
  ENTER();
  if (!isStream(stream))
    return kErrorInvalidHandle;
  ++machine.captures;
  machine.capturing = stream;
  machine.captured[stream];
  machine.recording = std::make_unique<Recording>();
  return kSuccess;
}
CUresult fakecuStreamEndCapture(CUstream, CUgraph *graph) {
  ENTER();
  bool joined = true;
  for (auto &[stream, captured] : machine.captured)
    joined &= stream == machine.capturing || captured.joined == captured.work;
  machine.captured.clear();
  if (!joined) {
    machine.recording.reset();
    *graph = nullptr;
    return kErrorCaptureUnjoined;
  }
  *graph = reinterpret_cast<CUgraph>(machine.recording.release());
  return kSuccess;
}
CUresult fakecuGraphInstantiateWithFlags(CUgraphExec *executable,
                                         CUgraph graph, unsigned long long) {
  ENTER();
  *executable = reinterpret_cast<CUgraphExec>(
      new Recording(*reinterpret_cast<Recording *>(graph)));
  return kSuccess;
}
CUresult fakecuGraphLaunch(CUgraphExec executable, CUstream stream) {
  ENTER();
  if (!isStream(stream))
    return kErrorInvalidHandle;
  submit(stream, [launches = *reinterpret_cast<Recording *>(executable)] {
    runGraph(launches);
  });
  return kSuccess;
}
CUresult fakecuGraphExecDestroy(CUgraphExec executable) {
  delete reinterpret_cast<Recording *>(executable);
  return kSuccess;
}
CUresult fakecuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                               CUstream stream) {
  ENTER(kNotInCapture);
  if (!isStream(stream))
    return kErrorInvalidHandle;
  if (capturedStream(stream))
    return forbid();
  submit(stream, [=] {
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
                bytes);
  });
  return kSuccess;
}
CUresult fakecuEventCreate(CUevent *event, unsigned) {
  ENTER();
  static uintptr_t next = 0x4000;
  ++machine.live["event"];
  *event = reinterpret_cast<CUevent>(next++);
  machine.events[*event] = {};
  return kSuccess;
}
CUresult fakecuEventDestroy(CUevent event) {
  ENTER_RELEASE();
  if (machine.events.erase(event) == 0)
    return kErrorInvalidHandle;
  --machine.live["event"];
  return lost;
}
CUresult fakecuEventSynchronize(CUevent event) {
  ENTER(kNotInCapture);
  if (!machine.events.count(event))
    return kErrorInvalidHandle;
  if (machine.events[event].capture)
    return kErrorCapturedEvent;
  runUpTo(machine.events[event].tail);
  return kSuccess;
}
CUresult fakecuEventRecord(CUevent event, CUstream stream) {
  ENTER();
  if (!isStream(stream) || !machine.events.count(event))
    return kErrorInvalidHandle;
  const Captured *captured = capturedStream(stream);
  machine.events[event] = {stream, captured ? captured->work : 0,
                           captured ? machine.captures : 0,
                           captured ? captured->tail : tailOf(stream)};
  return kSuccess;
}
CUresult fakecuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  ENTER();
  *milliseconds = 1;
  return kSuccess;
}
CUresult fakecuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Recording *>(graph);
  return kSuccess;
}

} // namespace

void runQueue() {
  Tail all;
  for (const auto &[id, work] : machine.queue)
    all.insert(id);
  runUpTo(all);
}

const std::map<std::string, void *> &streamFunctions() {
  static const std::map<std::string, void *> functions = {
      FUNCTION(cuCtxSynchronize), FUNCTION(cuLaunchKernel),
      FUNCTION(cuLaunchKernelEx), FUNCTION(cuMemcpyHtoDAsync),
      FUNCTION(cuMemcpyDtoHAsync), FUNCTION(cuMemcpyDtoDAsync),
      FUNCTION(cuMemsetD8Async), FUNCTION(cuStreamCreate),
      FUNCTION(cuStreamCreateWithPriority), FUNCTION(cuStreamDestroy),
      FUNCTION(cuStreamWaitEvent), FUNCTION(cuStreamSynchronize),
      FUNCTION(cuStreamIsCapturing), FUNCTION(cuStreamGetCaptureInfo),
      FUNCTION(cuThreadExchangeStreamCaptureMode),
      FUNCTION(cuStreamBeginCapture), FUNCTION(cuStreamEndCapture),
      FUNCTION(cuGraphInstantiateWithFlags), FUNCTION(cuGraphLaunch),
      FUNCTION(cuGraphExecDestroy), FUNCTION(cuGraphDestroy),
      FUNCTION(cuEventCreate), FUNCTION(cuEventDestroy),
      FUNCTION(cuEventRecord), FUNCTION(cuEventElapsedTime),
      FUNCTION(cuEventSynchronize)};
  return functions;
}

} // namespace sinkstate::test::fake
