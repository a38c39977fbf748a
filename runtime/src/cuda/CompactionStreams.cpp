//===- CompactionStreams.cpp - Compactions beside later layers ------------===//

#include "cuda/CompactionStreams.h"

#include "capi/Failure.h"

#include <utility>

namespace sinkstate::runtime::cuda {

CompactionStreams::CompactionStreams(std::shared_ptr<const Context> owner,
                                     int count)
    : context(std::move(owner)), branches(size_t(count)) {
  if (count == 0)
    return;
  const Driver &driver = context->driver();
  try {
    // Decode is what the caller waits for: its blocks go first.
    int lowest = 0, highest = 0;
    SS_CUDA(driver, cuCtxGetStreamPriorityRange(&lowest, &highest));
    for (Branch &branch : branches) {
      SS_CUDA(driver, cuStreamCreateWithPriority(&branch.stream,
                                                 kStreamNonBlocking, lowest));
      SS_CUDA(driver, cuEventCreate(&branch.event, kEventDisableTiming));
    }
  } catch (...) {
    release();
    throw;
  }
}

CompactionStreams::~CompactionStreams() {
  try {
    CurrentContext current(*context);
    release();
  } catch (const Failure &) {
    // The context is gone, and its streams with it.
  }
}

void CompactionStreams::release() noexcept {
  const Driver::Functions &functions = context->driver().functions();
  for (Branch &branch : branches) {
    if (branch.event)
      (void)functions.cuEventDestroy(branch.event);
    if (branch.stream)
      (void)functions.cuStreamDestroy(branch.stream);
  }
  branches.clear();
}

/// An event may be recorded again as soon as the wait for it is queued.
void CompactionStreams::order(CUstream first, CUevent event,
                              CUstream second) const {
  SS_CUDA(context->driver(), cuEventRecord(event, first));
  SS_CUDA(context->driver(), cuStreamWaitEvent(second, event, 0));
}

CUstream CompactionStreams::fork(CUstream from) {
  if (branches.empty())
    return from;
  Branch &branch = branches[next];
  next = (next + 1) % branches.size();
  order(from, branch.event, branch.stream);
  branch.forked = true;
  return branch.stream;
}

void CompactionStreams::join(CUstream into) {
  for (Branch &branch : branches)
    // Not again if this fails: what an abandoned capture held cannot be joined.
    if (std::exchange(branch.forked, false))
      order(branch.stream, branch.event, into);
  next = 0;
}

} // namespace sinkstate::runtime::cuda
