//===- Pipeline.h - Three stages on their own threads -----------*- C++ -*-===//
//
// Download, SVD, upload: each stage has threads of its own and a bounded queue
// before it. The download and the upload are the device's (StateTransfer); the
// SVDs are the host's, one head a task, so that a long one holds up nobody but
// its own job. The owner submits jobs and takes finished ones; neither waits.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONSOLIDATION_PIPELINE_H
#define SINKSTATE_CONSOLIDATION_PIPELINE_H

#include "consolidation/BoundedQueue.h"
#include "consolidation/ExactSvd.h"
#include "consolidation/Scheduler.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sinkstate::consolidation {

/// How far the rows of one state have been read. The reader takes `pending` to
/// `copying` and `copied`; the owner of the rows may take `pending` to
/// `cancelled`, and must not change them while they are being copied.
enum class ReadStage { pending, copying, copied, cancelled };

/// One state (one head of one slot) on the host.
struct StateCopy {
  std::shared_ptr<std::atomic<ReadStage>> stage =
      std::make_shared<std::atomic<ReadStage>>(ReadStage::pending);
  int32_t target = 0;  ///< which target of the job it belongs to
  int64_t state = 0;   ///< slot * heads + head
  int32_t dk = 0, dv = 0;
  bool dense = false;  ///< read: dk x dv floats, to be brought into factors
  int32_t active = 0;  ///< leading rows that stay as they are
  int32_t count = 0;   ///< rows read
  Truncation truncation;
  std::vector<float> matrix; ///< of a dense state
  std::vector<float> rows, weights;
  /// Of the part behind the active rows; none: no memory, or cancelled.
  SvdResult result{SvdStatus::notConverged, 0};
  bool done = false;   ///< the SVD ran
  // Where the device finds the rows, in its storage; unused by the stages.
  const std::byte *deviceRows = nullptr;
  const float *deviceWeights = nullptr;

  /// Rows and weights that replace those read: the active ones, then those of
  /// the SVD.
  int32_t rankAfter() const { return active + result.rank; }
};

struct HostJob {
  Job job;
  std::vector<StateCopy> states;
  std::atomic<int64_t> left{0}; ///< SVDs to be done
  std::atomic<int64_t> skipped{0}; ///< of them, not wanted any more
  std::atomic<int64_t> nanoseconds{0}; ///< that the others took
  // Of the device; unused by the stages.
  std::vector<int64_t> positions; ///< per target, when its rows were read
  int32_t place = -1;             ///< where its results wait; negative: nowhere
};

/// What the stages need of a device. `download` and `upload` are called on
/// threads of their own, one job at a time each.
class StateTransfer {
public:
  virtual ~StateTransfer() = default;
  /// Copies the rows and weights of every state of the job to the host, active
  /// ones first, where the state's stage can be taken from pending.
  virtual void download(HostJob &job) = 0;
  /// Brings results to where the device can take them over in one short
  /// operation of its decode order.
  virtual void upload(HostJob &job) = 0;
  /// Right before an SVD, on its thread: whether the result can still land. What is
  /// overtaken in the queue then costs nothing.
  virtual bool isWanted(const HostJob &, const StateCopy &) const {
    return true;
  }
};

struct PipelineOptions {
  int32_t svdThreads = 1;
  size_t places = 4; ///< of each queue, in jobs
  /// Processors for the threads, one each, in the order download, upload, SVDs, and
  /// then what the owner has; from the beginning again where there are fewer.
  /// Empty: not pinned.
  std::vector<int32_t> cpus = {};
  /// Is told of a thread that could not be pinned: it runs anywhere, which is
  /// slower but right.
  std::function<void(const std::string &)> warn = {};

  /// Binds thread number `index` of that order.
  void pin(std::thread &thread, size_t index) const;
};

class Pipeline {
public:
  /// `svd` replaces the SVD of a state, for tests.
  Pipeline(StateTransfer &transfer, const PipelineOptions &options,
           std::function<void(StateCopy &)> svd = decompose);
  ~Pipeline();
  Pipeline(const Pipeline &) = delete;
  Pipeline &operator=(const Pipeline &) = delete;

  /// At most `places` jobs may be under way; then it does not wait.
  void submit(std::unique_ptr<HostJob> job);
  /// A job that is at its end, Job::work filled in, or null.
  std::unique_ptr<HostJob> tryTake();
  /// Waits for one. Null only where nothing is under way.
  std::unique_ptr<HostJob> take();

  /// The exact SVD of a downloaded state.
  static void decompose(StateCopy &state);

private:
  struct SvdTask {
    HostJob *job;
    size_t state;
  };

  void runDownloads();
  void runSvds();
  void runUploads();
  void start(void (Pipeline::*run)());
  void stop();
  std::unique_ptr<HostJob> release(HostJob *done);

  StateTransfer &transfer;
  PipelineOptions options;
  std::function<void(StateCopy &)> svd;
  BoundedQueue<HostJob *> toDownload, toUpload, finished;
  BoundedQueue<SvdTask> toDecompose;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<HostJob>> jobs; ///< under way; the owner's thread
};

} // namespace sinkstate::consolidation

#endif
