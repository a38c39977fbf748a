//===- kernel-timeline.cpp - When the kernels of a replayed graph run -----===//
//
// A library that the CUDA driver loads into a process, which then prints, when it
// ends, for every kind of graph that it has launched (by its number of kernels)
// the time of each kernel and the kernels of one launch in their order:
//
//   g++ -O2 -std=c++20 -shared -fPIC -I CUDA/include scripts/kernel-timeline.cpp
//     -o libkernel-timeline.so -L CUDA/lib64 -lcupti
//   CUDA_INJECTION64_PATH=$PWD/libkernel-timeline.so ss-bench --package FOLDER
//     --batch 8 --stagger on --steps 16
//
// TIMELINE_ROWS: kernels of the launch that are printed (60). Needs CUPTI of
// CUDA 13, and nothing of this project. Tracing makes launches a few per cent longer.
//
//===----------------------------------------------------------------------===//

#include <cuda.h>
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Kernel {
  uint64_t start, end; // ns
  uint32_t stream;
  int blocks, threads;
  std::string name;
};
using Launch = std::vector<Kernel>;

std::mutex lock;
std::map<uint32_t, Launch> launches; ///< of graphs, by correlation

void CUPTIAPI giveBuffer(uint8_t **buffer, size_t *bytes, size_t *records) {
  *bytes = size_t(8) << 20;
  *records = 0;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, *bytes));
}

void CUPTIAPI takeBuffer(CUcontext, uint32_t, uint8_t *buffer, size_t,
                         size_t valid) {
  std::lock_guard<std::mutex> hold(lock);
  CUpti_Activity *record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      continue;
    const auto *kernel =
        reinterpret_cast<const CUpti_ActivityKernel10 *>(record);
    if (kernel->graphId != 0)
      launches[kernel->correlationId].push_back(
          {kernel->start, kernel->end, kernel->streamId,
           kernel->gridX * kernel->gridY, kernel->blockX, kernel->name});
  }
  std::free(buffer);
}

double microseconds(uint64_t from, uint64_t to) {
  return double(int64_t(to - from)) / 1e3;
}

/// Mean and sum a launch of each kernel, over the later half of the launches.
void printMeans(const std::vector<Launch *> &all) {
  const std::vector<Launch *> some(all.begin() + std::ptrdiff_t(all.size() / 2),
                                   all.end());
  struct Total {
    double time = 0, most = 0;
    int64_t count = 0;
  };
  std::map<std::string, Total> totals;
  double span = 0;
  for (const Launch *launch : some) {
    uint64_t end = 0;
    for (const Kernel &kernel : *launch) {
      Total &total = totals[kernel.name];
      const double time = microseconds(kernel.start, kernel.end);
      total.time += time;
      total.most = std::max(total.most, time);
      ++total.count;
      end = std::max(end, kernel.end);
    }
    span += microseconds(launch->front().start, end);
  }
  const auto count = double(some.size());
  std::printf("\n%zu launches of %zu kernels, %.1f us each\n\n"
              "| kernel | a launch | mean, us | largest | sum a launch |\n"
              "| --- | --- | --- | --- | --- |\n",
              all.size(), all.front()->size(), span / count);
  for (const auto &[name, total] : totals)
    std::printf("| %s | %.0f | %.2f | %.2f | %.1f |\n", name.c_str(),
                double(total.count) / count, total.time / double(total.count),
                total.most, total.time / count);
}

void printKernels(const Launch &launch, int rows) {
  std::map<uint32_t, size_t> streams;
  std::printf("\n| at, us | for, us | stream | blocks | threads | kernel |\n"
              "| --- | --- | --- | --- | --- | --- |\n");
  for (const Kernel &kernel : launch) {
    if (rows-- == 0)
      return;
    const size_t stream =
        streams.emplace(kernel.stream, streams.size()).first->second;
    std::printf("| %.1f | %.1f | %zu | %d | %d | %s |\n",
                microseconds(launch.front().start, kernel.start),
                microseconds(kernel.start, kernel.end), stream, kernel.blocks,
                kernel.threads, kernel.name.c_str());
  }
}

void report() {
  cuptiActivityFlushAll(1);
  std::lock_guard<std::mutex> hold(lock);
  const char *given = std::getenv("TIMELINE_ROWS");
  std::map<size_t, std::vector<Launch *>> kinds;
  for (auto &[correlation, launch] : launches) {
    std::sort(launch.begin(), launch.end(), [](const Kernel &a, const Kernel &b) {
      return a.start < b.start;
    });
    kinds[launch.size()].push_back(&launch);
  }
  for (const auto &[kernels, all] : kinds) {
    printMeans(all);
    printKernels(*all.back(), given ? std::atoi(given) : 60);
  }
}

} // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (cuptiActivityRegisterCallbacks(giveBuffer, takeBuffer) != CUPTI_SUCCESS ||
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) !=
          CUPTI_SUCCESS) {
    std::fprintf(stderr, "kernel-timeline: CUPTI does not trace kernels here, "
                         "expected a driver and permissions that allow it\n");
    return 0;
  }
  std::atexit(report);
  return 1;
}
