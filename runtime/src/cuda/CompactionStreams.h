//===- CompactionStreams.h - Compactions beside later layers ----*- C++ -*-===//
//
// A compaction is needed by its layer's next step only. It is queued on a
// stream of the engine's own that waits for the layer's decode and that the end
// of the step waits for; in a captured step these are parallel branches of the
// graph. Events order everything, so nothing is waited for on the host.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_COMPACTIONSTREAMS_H
#define SINKSTATE_CUDA_COMPACTIONSTREAMS_H

#include "cuda/Context.h"

#include <vector>

namespace sinkstate::runtime::cuda {

class CompactionStreams {
public:
  /// `count` streams of the lowest priority; with 0 `fork` returns the stream
  /// that it is given.
  CompactionStreams(std::shared_ptr<const Context> context, int count);
  CompactionStreams(const CompactionStreams &) = delete;
  CompactionStreams &operator=(const CompactionStreams &) = delete;
  ~CompactionStreams();

  /// A stream in which work comes after everything queued on `from` so far.
  CUstream fork(CUstream from);
  /// Whatever is queued on `into` from now on comes after all forked work.
  void join(CUstream into);

private:
  struct Branch {
    CUstream stream = nullptr;
    CUevent event = nullptr; ///< last used in the order fork, join
    bool forked = false;     ///< since the last join
  };
  void release() noexcept;
  void order(CUstream first, CUevent event, CUstream second) const;

  std::shared_ptr<const Context> context;
  std::vector<Branch> branches;
  size_t next = 0;
};

} // namespace sinkstate::runtime::cuda

#endif
