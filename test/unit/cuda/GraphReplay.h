//===- GraphReplay.h - Steps as CUDA graphs ---------------------*- C++ -*-===//
//
// Captures calls, and makes a RequestDriver capture the first step of every batch
// size and replay the graph from then on, over whatever driver the process has.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_GRAPHREPLAY_H
#define SINKSTATE_UNIT_GRAPHREPLAY_H

#include "RequestDriver.h"

#include "cuda/Context.h"

#include <functional>
#include <map>
#include <memory>

namespace sinkstate::test {

/// A test's own calls to the driver are made in a scope that has `current()`; calls of
/// an engine outside, as an engine brings its own. Made before any capture.
class GpuContext {
public:
  runtime::cuda::CurrentContext current() const {
    return runtime::cuda::CurrentContext(*context);
  }

private:
  const std::shared_ptr<const runtime::cuda::Context> context =
      runtime::cuda::Context::open(runtime::cuda::Driver::get(), 0);
};

/// Calls that were captured once, in a stream of their own.
class CapturedCalls {
public:
  explicit CapturedCalls(const std::function<void(void *stream)> &calls);
  CapturedCalls(const CapturedCalls &) = delete;
  CapturedCalls &operator=(const CapturedCalls &) = delete;
  ~CapturedCalls();
  /// Runs them and waits.
  void replay() const;
  /// Queues them on the stream of `other`.
  void launchOn(const CapturedCalls &other) const;
  void wait() const;

private:
  std::shared_ptr<const runtime::cuda::Driver> driver;
  std::shared_ptr<const runtime::cuda::Context> context;
  runtime::cuda::CUstream stream = nullptr;
  runtime::cuda::CUgraphExec graph = nullptr;
};

class GraphReplay {
public:
  explicit GraphReplay(reference::RequestDriver &driver);
  size_t captured() const { return graphs.size(); }

private:
  std::map<size_t, CapturedCalls> graphs;
};

} // namespace sinkstate::test

#endif
