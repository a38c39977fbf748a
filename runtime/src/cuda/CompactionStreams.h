//===- CompactionStreams.h - Compactions beside later layers ----*- C++ -*-===//
//
// A compaction is needed by its layer's next step only. It is queued on a
// stream of the engine's own that waits for the layer's decode and that the end
// of the step waits for; in a captured step these are parallel branches of the
// graph. One that comes before its layer's token has a branch that leaves some
// layers in front, and that this layer's decode alone waits for. What a step plans for its compactions has a branch too, which they
// wait for and decodes do not. Events order everything, so nothing is waited
// for on the host.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_COMPACTIONSTREAMS_H
#define SINKSTATE_CUDA_COMPACTIONSTREAMS_H

#include "cuda/Context.h"

#include <array>
#include <vector>

namespace sinkstate::runtime::cuda {

class CompactionStreams {
public:
  /// `count` streams of the lowest priority, as many for compactions that are
  /// `ahead` of their layers in a step, some for returns to factors, where there
  /// are any, and one of the highest for plans, which are short and which
  /// everything else waits for; with 0 all of them return the stream that they
  /// are given.
  CompactionStreams(std::shared_ptr<const Context> context, int count,
                    size_t ahead, bool hasReturns);
  CompactionStreams(const CompactionStreams &) = delete;
  CompactionStreams &operator=(const CompactionStreams &) = delete;
  ~CompactionStreams();

  /// The stream for what a step plans, after everything queued on `from` so
  /// far. Others wait for what is queued there until planned() was last called.
  CUstream plan(CUstream from);
  void planned();
  /// The same stream, as long as it is not joined; null: then, or there is none.
  CUstream planStream() const {
    return planning.forked ? planning.stream : nullptr;
  }
  /// One that takes part in every capture of a step; null: there is none.
  CUstream ownStream() const { return planning.stream; }
  /// Whatever is queued on `into` from now on comes after the plan so far.
  void waitForPlan(CUstream into) const;
  /// And after the whole plan, which ends.
  void joinPlan(CUstream into);
  /// A stream in which work comes after the plan and after everything queued on
  /// `from` so far.
  CUstream fork(CUstream from);
  /// The same for folds of matrices, behind `from` alone, on streams of their
  /// own: they are short, and come out of the order of the compactions.
  CUstream forkFold(CUstream from);
  /// The same for what follows a fold where matrices are decomposed: seldom, but
  /// for long, so that no later layer's fold is to stand behind it.
  CUstream forkReturn(CUstream from);
  /// The same for compactions that are ahead; finishAhead() says that all of
  /// compaction `number` is queued there.
  CUstream forkAhead(CUstream from);
  void finishAhead(size_t number, CUstream branch) const;
  /// Whatever is queued on `into` from now on comes after that compaction, which
  /// has been finished since the last join.
  void joinAhead(size_t number, CUstream into) const;
  /// Whatever is queued on `into` from now on comes after all forked work. Where it
  /// throws nothing is forked any more.
  void join(CUstream into);
  /// Returns when all forked work is done. Not while it is captured.
  void wait();
  /// What was forked never runs: a capture was thrown away.
  void forget();

private:
  void joinAll(CUstream into);
  struct Branch {
    CUstream stream = nullptr;
    CUevent event = nullptr; ///< last used in the order fork, join
    bool forked = false;     ///< since the last join
  };
  /// Streams that take turns.
  struct Ring {
    std::vector<Branch> branches;
    size_t next = 0;
  };
  std::array<Ring *, 4> rings();
  void create(Branch &branch, int priority) const;
  Branch *forkInto(Ring &ring, CUstream from);
  CUstream forkBehind(Ring &ring, CUstream from);
  CUstream forkBehindPlan(Ring &ring, CUstream from);
  void destroyAll();
  void order(CUstream first, CUevent event, CUstream second) const;

  std::shared_ptr<const Context> context;
  Branch planning;
  Ring compactions, folds, returns, ahead;
  std::vector<CUevent> finished; ///< of those that are ahead
};

} // namespace sinkstate::runtime::cuda

#endif
