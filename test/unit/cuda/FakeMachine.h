//===- FakeMachine.h - What the fake driver keeps ---------------*- C++ -*-===//
#ifndef SINKSTATE_UNIT_FAKEMACHINE_H
#define SINKSTATE_UNIT_FAKEMACHINE_H

#include "FakeCuda.h"

#include "cuda/DriverTypes.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sinkstate::test::fake {

using namespace sinkstate::runtime::cuda;

struct Kernel {
  std::string name;
  std::vector<size_t> sizes;
  fake_kernel run;
  void *context;
  unsigned dynamicShared = 48 * 1024; // that a launch may ask for
};

/// Numbers of the work that what follows has to come after.
using Tail = std::set<size_t>;

struct Launch {
  const Kernel *kernel;
  std::vector<std::vector<std::byte>> values;
  unsigned blocks;
  size_t id = 0; // in a capture
  Tail after;
  void run();
};

using Recording = std::vector<Launch>;

/// What an event marks: the work of a stream up to a point.
struct Mark {
  CUstream stream = nullptr;
  int work = 0;
  unsigned long long capture = 0; // it was recorded in, until it is recorded anew
  Tail tail;
};

/// Work that waits until somebody waits for it.
struct Queued {
  Tail after;
  std::function<void()> run;
};

/// A stream that takes part in the capture. Its launches come as late in the
/// graph as is allowed: when another stream waits for them.
struct Captured {
  int work = 0;   // operations so far
  int joined = 0; // those that another stream waits for
  Recording launches;
  Tail tail;
};

struct PlannedFailure {
  CUresult error = kSuccess;
  int skip = 0;
  bool sticky = false;
};

struct Machine {
  /// SS_FAKE_SHUFFLE in the environment is a seed to begin with.
  Machine();
  int version = 13000, devices = 1, major = 9, minor = 0;
  size_t limit = size_t(8) << 30, used = 0;
  std::set<std::string> hidden;
  std::map<std::string, PlannedFailure> failures;
  CUresult lost = kSuccess;
  std::map<std::string, int> calls;
  std::map<std::string, Kernel> kernels;
  std::deque<Kernel> loaded; // what modules have; a later kernel of the same
                             // name is another module's
  std::map<CUdeviceptr, size_t> memory;
  size_t granularity = 4096; // of mapped memory; 0: it cannot be mapped
  std::map<CUmemGenericAllocationHandle, size_t> handles;
  CUmemGenericAllocationHandle lastHandle = 0;
  std::map<CUdeviceptr, size_t> mappings;
  std::set<void *> hostMemory;
  std::map<void *, size_t> hostBytes;
  std::map<std::string, int> live; // other objects by kind
  CUstream capturing = nullptr;
  std::map<CUstream, Captured> captured; // `capturing` among them
  std::map<CUevent, Mark> events;
  std::set<CUstream> streams; // but for those that CUDA itself has
  std::unique_ptr<Recording> recording;
  unsigned long long captures = 0;
  bool shuffles = false;
  std::mt19937 random;
  std::map<size_t, Queued> queue;
  size_t lastQueued = 0;
  std::map<CUstream, Tail> tails;
  std::set<CUstream> blocking; // streams that the legacy stream waits for
  int forbidden = 0;
  bool uncontrolled = false;
  unsigned blocks = 0, threads = 0, shared = 0;
  std::string watched;
  unsigned watchedBlocks = 0, watchedThreads = 0, watchedAttributes = 0;
  bool logs = false;
  std::string log; // kernels in the order in which they ran, a line each
};
extern Machine machine;

/// Calls of any thread come one after another, kernels included; a kernel may
/// call the driver, through what the test does in it.
extern std::recursive_mutex machineMutex;

/// Calls that other threads than the one that holds them wait in.
struct Held {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::thread::id> by;
  std::map<std::string, int> waiting;
};
extern Held held;

} // namespace sinkstate::test::fake

#endif
