//===- CudaSession.cpp - A GPU to measure on ------------------------------===//

#include "CudaSession.h"

#include "capi/Failure.h"
#include "sinkstate/sinkstate.h"

#include <algorithm>
#include <cctype>
#include <fstream>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;
using namespace ss_bench;

static CUdeviceptr addressOf(const void *memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

/// The first number with a dot that the kernel module says of itself; empty where
/// the system has none, as beside a fake driver.
static std::string driverVersion() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (std::isdigit(static_cast<unsigned char>(word[0])) &&
        word.find('.') != std::string::npos)
      return word;
  return "";
}

CudaSession::CudaSession(int32_t device)
    : library(Driver::get()), context(Context::open(library, device)),
      current(std::make_unique<CurrentContext>(*context)) {
  const Driver::Functions &call = library->functions();
  if (!call.cuEventElapsedTime || !call.cuGraphLaunch || !call.cuMemcpyDtoDAsync)
    fail(SS_DEVICE_UNAVAILABLE,
         "the driver has no graphs or events, expected one for CUDA 12.4 or "
         "newer: update it");
  SS_CUDA(*library, cuStreamCreate(&queue, kStreamNonBlocking));
}

CudaSession::~CudaSession() {
  const Driver::Functions &call = library->functions();
  for (CUevent event : events)
    (void)call.cuEventDestroy(event);
  (void)call.cuStreamDestroy(queue);
}

std::string CudaSession::description() const {
  return context->name() + ", driver for CUDA " +
         versionText(library->version());
}

MachineFacts CudaSession::facts() const {
  return {context->name(), versionText(library->version()), driverVersion()};
}

void *CudaSession::allocate(size_t bytes) {
  CUdeviceptr address = 0;
  SS_CUDA(*library, cuMemAlloc(&address, std::max<size_t>(bytes, 16)));
  return reinterpret_cast<void *>(address);
}

void CudaSession::free(void *memory) {
  if (memory)
    (void)library->functions().cuMemFree(addressOf(memory));
}

void CudaSession::upload(void *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return;
  SS_CUDA(*library, cuMemcpyHtoDAsync(addressOf(to), from, bytes, queue));
  wait();
}

void CudaSession::download(void *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return;
  SS_CUDA(*library, cuMemcpyDtoHAsync(to, addressOf(from), bytes, queue));
  wait();
}

void CudaSession::copy(void *to, const void *from, size_t bytes) {
  if (bytes > 0)
    SS_CUDA(*library,
            cuMemcpyDtoDAsync(addressOf(to), addressOf(from), bytes, queue));
}

void CudaSession::repeat(void *to, size_t unit, size_t bytes) {
  auto *begin = static_cast<char *>(to);
  for (size_t done = unit; done < bytes; done *= 2)
    copy(begin + done, begin, std::min(done, bytes - done));
}

void CudaSession::wait() { SS_CUDA(*library, cuStreamSynchronize(queue)); }

CudaSession::Graph CudaSession::capture(const std::function<void()> &enqueue) {
  SS_CUDA(*library, cuStreamBeginCapture(queue, kCaptureModeThreadLocal));
  enqueue();
  CUgraph graph = nullptr;
  SS_CUDA(*library, cuStreamEndCapture(queue, &graph));
  CUgraphExec executable = nullptr;
  SS_CUDA(*library, cuGraphInstantiateWithFlags(&executable, graph, 0));
  SS_CUDA(*library, cuGraphDestroy(graph));
  return executable;
}

void CudaSession::destroy(Graph graph) {
  (void)library->functions().cuGraphExecDestroy(graph);
}

void CudaSession::needEvents(size_t count) {
  while (events.size() < count) {
    CUevent event = nullptr;
    SS_CUDA(*library, cuEventCreate(&event, 0));
    events.push_back(event);
  }
}

double CudaSession::between(size_t first, size_t last) {
  float milliseconds = 0;
  SS_CUDA(*library,
          cuEventElapsedTime(&milliseconds, events[first], events[last]));
  return milliseconds;
}

std::vector<double>
CudaSession::replay(std::span<const Graph> graphs,
                    const std::function<void()> &before) {
  needEvents(graphs.size() + 1);
  SS_CUDA(*library, cuEventRecord(events[0], queue));
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (before)
      before();
    SS_CUDA(*library, cuGraphLaunch(graphs[i], queue));
    SS_CUDA(*library, cuEventRecord(events[i + 1], queue));
  }
  SS_CUDA(*library, cuEventSynchronize(events[graphs.size()]));
  std::vector<double> times;
  for (size_t i = 0; i < graphs.size(); ++i)
    times.push_back(between(i, i + 1));
  return times;
}

double CudaSession::timed(const std::function<void()> &enqueue) {
  needEvents(2);
  SS_CUDA(*library, cuEventRecord(events[0], queue));
  enqueue();
  SS_CUDA(*library, cuEventRecord(events[1], queue));
  SS_CUDA(*library, cuEventSynchronize(events[1]));
  return between(0, 1);
}

size_t CudaSession::freeBytes() const {
  size_t free = 0, total = 0;
  SS_CUDA(*library, cuMemGetInfo(&free, &total));
  return free;
}

double CudaSession::copyBandwidth(size_t bytes) {
  constexpr int kCopies = 20;
  void *from = allocate(bytes), *to = allocate(bytes);
  SS_CUDA(*library, cuMemsetD8Async(addressOf(from), 0x5a, bytes, queue));
  needEvents(2);
  std::vector<double> times;
  for (int i = 0; i < kCopies; ++i) {
    SS_CUDA(*library, cuEventRecord(events[0], queue));
    copy(to, from, bytes);
    SS_CUDA(*library, cuEventRecord(events[1], queue));
    SS_CUDA(*library, cuEventSynchronize(events[1]));
    times.push_back(between(0, 1));
  }
  free(from);
  free(to);
  std::nth_element(times.begin(), times.begin() + kCopies / 2, times.end());
  return 2.0 * double(bytes) / (times[kCopies / 2] * 1e-3);
}
