//===- CompactionStreams.cpp - Compactions beside later layers ------------===//

#include "cuda/CompactionStreams.h"

#include "capi/Failure.h"

#include <algorithm>
#include <utility>

namespace sinkstate::runtime::cuda {

constexpr int kFoldStreams = 2;
/// A decomposition is much longer than a fold: what many layers try in a step is to
/// run at the same time.
constexpr int kReturnStreams = 8;

CompactionStreams::CompactionStreams(std::shared_ptr<const Context> owner,
                                     int count, size_t aheadCount,
                                     bool hasReturns)
    : context(std::move(owner)) {
  if (count == 0)
    return;
  compactions.branches.resize(size_t(count));
  folds.branches.resize(kFoldStreams);
  if (hasReturns)
    returns.branches.resize(kReturnStreams);
  if (aheadCount > 0)
    ahead.branches.resize(size_t(count));
  finished.resize(aheadCount);
  try {
    // Decode is what the caller waits for: its blocks go before compactions.
    int lowest = 0, highest = 0;
    SS_CUDA(context->driver(), cuCtxGetStreamPriorityRange(&lowest, &highest));
    create(planning, highest);
    for (Ring *ring : rings())
      for (Branch &branch : ring->branches)
        create(branch, lowest);
    for (CUevent &event : finished)
      SS_CUDA(context->driver(), cuEventCreate(&event, kEventDisableTiming));
  } catch (...) {
    destroyAll();
    throw;
  }
}

/// Those whose work the end of a step waits for, in the order in which it does.
std::array<CompactionStreams::Ring *, 4> CompactionStreams::rings() {
  return {&compactions, &folds, &returns, &ahead};
}

void CompactionStreams::create(Branch &branch, int priority) const {
  SS_CUDA(context->driver(), cuStreamCreateWithPriority(
                                 &branch.stream, kStreamNonBlocking, priority));
  SS_CUDA(context->driver(), cuEventCreate(&branch.event, kEventDisableTiming));
}

CompactionStreams::~CompactionStreams() {
  try {
    destroyAll();
  } catch (const Failure &) {
    // The context is gone, and its streams with it.
  }
}

void CompactionStreams::destroyAll() {
  const Release release(*context);
  auto releaseBranch = [&](Branch &branch) {
    if (branch.event)
      SS_RELEASE(cuEventDestroy(branch.event));
    if (branch.stream)
      SS_RELEASE(cuStreamDestroy(branch.stream));
    branch = {};
  };
  releaseBranch(planning);
  for (Ring *ring : rings())
    std::for_each(ring->branches.begin(), ring->branches.end(), releaseBranch);
  for (CUevent &event : finished)
    if (CUevent old = std::exchange(event, nullptr))
      SS_RELEASE(cuEventDestroy(old));
}

/// An event may be recorded again as soon as the wait for it is queued.
void CompactionStreams::order(CUstream first, CUevent event,
                              CUstream second) const {
  SS_CUDA(context->driver(), cuEventRecord(event, first));
  SS_CUDA(context->driver(), cuStreamWaitEvent(second, event, 0));
}

CUstream CompactionStreams::plan(CUstream from) {
  if (compactions.branches.empty())
    return from;
  order(from, planning.event, planning.stream);
  planning.forked = true;
  return planning.stream;
}

void CompactionStreams::planned() {
  if (planning.forked)
    SS_CUDA(context->driver(), cuEventRecord(planning.event, planning.stream));
}

void CompactionStreams::waitForPlan(CUstream into) const {
  if (planning.forked)
    SS_CUDA(context->driver(), cuStreamWaitEvent(into, planning.event, 0));
}

void CompactionStreams::joinPlan(CUstream into) {
  // Not again if this fails: what an abandoned capture held cannot be joined.
  if (std::exchange(planning.forked, false))
    order(planning.stream, planning.event, into);
}

CUstream CompactionStreams::fork(CUstream from) {
  return forkBehindPlan(compactions, from);
}

CUstream CompactionStreams::forkFold(CUstream from) {
  return forkBehind(folds, from);
}

CUstream CompactionStreams::forkReturn(CUstream from) {
  return forkBehind(returns, from);
}

CUstream CompactionStreams::forkAhead(CUstream from) {
  return forkBehindPlan(ahead, from);
}

void CompactionStreams::finishAhead(size_t number, CUstream branch) const {
  if (!finished.empty())
    SS_CUDA(context->driver(), cuEventRecord(finished[number], branch));
}

void CompactionStreams::joinAhead(size_t number, CUstream into) const {
  if (!finished.empty())
    SS_CUDA(context->driver(), cuStreamWaitEvent(into, finished[number], 0));
}

CUstream CompactionStreams::forkBehind(Ring &ring, CUstream from) {
  Branch *branch = forkInto(ring, from);
  if (!branch)
    return from;
  branch->forked = true;
  return branch->stream;
}

CUstream CompactionStreams::forkBehindPlan(Ring &ring, CUstream from) {
  Branch *branch = forkInto(ring, from);
  if (!branch)
    return from;
  if (!branch->forked) // once is enough
    waitForPlan(branch->stream);
  branch->forked = true;
  return branch->stream;
}

/// The next branch of a ring, behind `from`; null where there is none.
CompactionStreams::Branch *CompactionStreams::forkInto(Ring &ring,
                                                       CUstream from) {
  if (ring.branches.empty())
    return nullptr;
  Branch &branch = ring.branches[ring.next];
  ring.next = (ring.next + 1) % ring.branches.size();
  order(from, branch.event, branch.stream);
  return &branch;
}

void CompactionStreams::join(CUstream into) {
  try {
    joinAll(into);
  } catch (...) {
    forget();
    throw;
  }
}

void CompactionStreams::wait() {
  auto waitFor = [&](const Branch &branch) {
    if (branch.forked)
      SS_CUDA(context->driver(), cuStreamSynchronize(branch.stream));
  };
  waitFor(planning);
  for (Ring *ring : rings())
    std::for_each(ring->branches.begin(), ring->branches.end(), waitFor);
}

void CompactionStreams::forget() {
  for (Ring *ring : rings()) {
    for (Branch &branch : ring->branches)
      branch.forked = false;
    ring->next = 0;
  }
  planning.forked = false;
}

void CompactionStreams::joinAll(CUstream into) {
  for (Ring *ring : rings()) {
    for (Branch &branch : ring->branches)
      if (std::exchange(branch.forked, false)) // as in joinPlan
        order(branch.stream, branch.event, into);
    ring->next = 0;
  }
  joinPlan(into);
}

} // namespace sinkstate::runtime::cuda
