//===- CudaSession.h - A GPU to measure on ----------------------*- C++ -*-===//
#ifndef SS_BENCH_CUDASESSION_H
#define SS_BENCH_CUDASESSION_H

#include "Measured.h"

#include "cuda/Context.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace ss_bench {

/// A context that is current while the session lives, a stream, and clocks on
/// it. Failures are thrown.
class CudaSession {
public:
  using Graph = sinkstate::runtime::cuda::CUgraphExec;

  explicit CudaSession(int32_t device);
  ~CudaSession();
  CudaSession(const CudaSession &) = delete;
  CudaSession &operator=(const CudaSession &) = delete;

  /// "NVIDIA H200, driver for CUDA 13.0"
  std::string description() const;
  MachineFacts facts() const;
  const sinkstate::runtime::cuda::Driver &driver() const { return *library; }
  std::shared_ptr<const sinkstate::runtime::cuda::Driver> sharedDriver() const {
    return library;
  }
  std::shared_ptr<const sinkstate::runtime::cuda::Context>
  sharedContext() const {
    return context;
  }
  sinkstate::runtime::cuda::CUstream stream() const { return queue; }
  /// Bytes of device memory that nobody has.
  size_t freeBytes() const;

  void *allocate(size_t bytes);
  void free(void *memory);
  /// Host memory to the device; returns when it is there.
  void upload(void *to, const void *from, size_t bytes);
  void download(void *to, const void *from, size_t bytes);
  /// Queued on the stream, device to device.
  void copy(void *to, const void *from, size_t bytes);
  /// Fills `bytes` from `to` on with the first `unit` of them, again and again.
  void repeat(void *to, size_t unit, size_t bytes);
  void wait();

  /// What `enqueue` puts on the stream, to be replayed.
  Graph capture(const std::function<void()> &enqueue);
  void destroy(Graph graph);
  /// Milliseconds of each of the graphs, launched one after the other, and
  /// `before` each launch what the host has to do: its time is not counted as
  /// long as the GPU has work.
  std::vector<double> replay(std::span<const Graph> graphs,
                             const std::function<void()> &before = {});

  /// Milliseconds of what `enqueue` puts on the stream, once.
  double timed(const std::function<void()> &enqueue);

  /// Bytes read and written per second by copies of `bytes` bytes.
  double copyBandwidth(size_t bytes);

private:
  std::shared_ptr<const sinkstate::runtime::cuda::Driver> library;
  std::shared_ptr<const sinkstate::runtime::cuda::Context> context;
  std::unique_ptr<sinkstate::runtime::cuda::CurrentContext> current;
  sinkstate::runtime::cuda::CUstream queue = nullptr;
  std::vector<sinkstate::runtime::cuda::CUevent> events;

  void needEvents(size_t count);
  double between(size_t first, size_t last);
};

} // namespace ss_bench

#endif
