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
  try {
    // Decode is what the caller waits for: its blocks go before compactions.
    int lowest = 0, highest = 0;
    SS_CUDA(context->driver(), cuCtxGetStreamPriorityRange(&lowest, &highest));
    create(planning, highest);
    for (Branch &branch : branches)
      create(branch, lowest);
  } catch (...) {
    release();
    throw;
  }
}

void CompactionStreams::create(Branch &branch, int priority) const {
  SS_CUDA(context->driver(), cuStreamCreateWithPriority(
                                 &branch.stream, kStreamNonBlocking, priority));
  SS_CUDA(context->driver(), cuEventCreate(&branch.event, kEventDisableTiming));
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
  branches.push_back(planning);
  for (Branch &branch : branches) {
    if (branch.event)
      (void)functions.cuEventDestroy(branch.event);
    if (branch.stream)
      (void)functions.cuStreamDestroy(branch.stream);
  }
  branches.clear();
  planning = {};
}

/// An event may be recorded again as soon as the wait for it is queued.
void CompactionStreams::order(CUstream first, CUevent event,
                              CUstream second) const {
  SS_CUDA(context->driver(), cuEventRecord(event, first));
  SS_CUDA(context->driver(), cuStreamWaitEvent(second, event, 0));
}

CUstream CompactionStreams::plan(CUstream from) {
  if (branches.empty())
    return from;
  order(from, planning.event, planning.stream);
  planning.forked = true;
  return planning.stream;
}

void CompactionStreams::planned() {
  if (planning.forked)
    SS_CUDA(context->driver(), cuEventRecord(planning.event, planning.stream));
}

void CompactionStreams::joinPlan(CUstream into) {
  // Not again if this fails: what an abandoned capture held cannot be joined.
  if (std::exchange(planning.forked, false))
    order(planning.stream, planning.event, into);
}

CUstream CompactionStreams::fork(CUstream from) {
  if (branches.empty())
    return from;
  Branch &branch = branches[next];
  next = (next + 1) % branches.size();
  order(from, branch.event, branch.stream);
  // Once is enough.
  if (planning.forked && !branch.forked)
    SS_CUDA(context->driver(),
            cuStreamWaitEvent(branch.stream, planning.event, 0));
  branch.forked = true;
  return branch.stream;
}

void CompactionStreams::join(CUstream into) {
  for (Branch &branch : branches)
    if (std::exchange(branch.forked, false)) // as above
      order(branch.stream, branch.event, into);
  joinPlan(into);
  next = 0;
}

} // namespace sinkstate::runtime::cuda
