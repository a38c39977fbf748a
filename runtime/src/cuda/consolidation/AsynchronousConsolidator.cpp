//===- AsynchronousConsolidator.cpp - Results when they are there ---------===//

#include "cuda/consolidation/AsynchronousConsolidator.h"

#include "capi/Failure.h"
#include "observe/Log.h"

#include <algorithm>
#include <optional>

namespace sinkstate::runtime::cuda {
namespace {

using namespace std::chrono_literals;

/// Jobs under way: one in every stage, one before each.
constexpr int32_t kMostJobs = 6;
/// Between two looks at the device's notes: far below a step's time; longer
/// and longer while nothing happens.
constexpr auto kShortest = 50us;
constexpr std::chrono::microseconds kLongest = 5ms;

} // namespace

AsynchronousConsolidator::AsynchronousConsolidator(
    const ConsolidatedStates &states, const ss_engine_options &options,
    const KernelCompiler &compiler)
    : CudaConsolidator(states, options, compiler, kMostJobs),
      context(states.context) {
  ended.reserve(kMostJobs);
  const consolidation::PipelineOptions stages = stagesOf(options, kMostJobs);
  pipeline = std::make_unique<consolidation::Pipeline>(
      static_cast<consolidation::StateTransfer &>(*this), stages);
  watcher = std::thread([this] { watch(); });
  // Behind the threads of the download, the upload and the SVDs.
  stages.pin(watcher, 2 + size_t(stages.svdThreads));
}

AsynchronousConsolidator::~AsynchronousConsolidator() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  stopped.notify_all();
  watcher.join();
  {
    std::lock_guard lock(boxMutex);
    boxesClosed = true;
  }
  boxFreed.notify_all();
  pipeline.reset();
}

//===----------------------------------------------------------------------===//
// The threads of the stages
//===----------------------------------------------------------------------===//

void AsynchronousConsolidator::download(HostJob &job) {
  const IgnoredCaptures ignored(*context);
  CudaConsolidator::download(job);
}

bool AsynchronousConsolidator::isWanted(const HostJob &job,
                                        const StateCopy &copy) const {
  const consolidation::Target &target = job.job.targets[size_t(copy.target)];
  return rows.epoch(job.job.layer, target.slot) == target.epoch;
}

int32_t AsynchronousConsolidator::takeBox() {
  std::unique_lock lock(boxMutex);
  for (;;) {
    if (boxesClosed)
      return -1;
    for (int32_t box = 0; box < ss::kMailboxes; ++box)
      if (!boxBusy[box]) {
        boxBusy[box] = true;
        return box;
      }
    boxFreed.wait(lock);
  }
}

bool AsynchronousConsolidator::hasBoxes() {
  std::lock_guard lock(boxMutex);
  return !boxesClosed;
}

void AsynchronousConsolidator::freeBox(int32_t box) {
  rows.clear(box);
  {
    std::lock_guard lock(boxMutex);
    boxBusy[box] = false;
  }
  boxFreed.notify_all();
}

void AsynchronousConsolidator::upload(HostJob &job) {
  if (std::none_of(job.states.begin(), job.states.end(),
                   [](const StateCopy &copy) { return copy.done; }))
    return;
  const IgnoredCaptures ignored(*context);
  const int32_t box = takeBox();
  if (box < 0)
    return;
  try {
    HostJob *one = &job;
    rows.publish(box, {&one, 1});
    job.place = box;
  } catch (const std::exception &failure) {
    // Nobody knows what the device has of it: no mailbox is used again.
    {
      std::lock_guard lock(boxMutex);
      boxesClosed = true;
    }
    writeLog(SS_LOG_WARNING, "consolidation",
             "it ends, and decoding goes on without: results were not "
             "uploaded: ",
             failure.what());
  }
}

//===----------------------------------------------------------------------===//
// The watcher
//===----------------------------------------------------------------------===//

void AsynchronousConsolidator::watch() {
  const IgnoredCaptures ignored(*context);
  std::chrono::microseconds pause = kShortest;
  std::unique_lock lock(mutex);
  while (!stopping && !failed) {
    const bool busy = poll() || scheduler.underWay() > 0;
    pause = busy ? kShortest : std::min(2 * pause, kLongest);
    stopped.wait_for(lock, pause);
  }
}

bool AsynchronousConsolidator::poll() {
  try {
    return landAndStart();
  } catch (const std::exception &failure) {
    // States stay as compaction leaves them, which is as exact. A job may be
    // half landed here: none is looked at again.
    writeLog(SS_LOG_WARNING, "consolidation",
             "it ends, and decoding goes on without: ", failure.what());
    failed = true;
    return false;
  }
}

bool AsynchronousConsolidator::noteChanges() {
  bool any = false;
  forEachChange([&](int32_t layer, int32_t slot, uint64_t note) {
    any = true;
    // New contents of a slot are seen by their epoch alone.
    if (note & ss::kNoteCompacted)
      scheduler.compacted(layer, slot, note >> ss::kNoteBits,
                          (note & ss::kNoteDue) != 0, now());
  });
  return any;
}

bool AsynchronousConsolidator::land(HostJob &job) {
  if (job.place >= 0 && !rows.isAnswered(job.place))
    return false;
  std::vector<uint8_t> landed(job.states.size());
  if (job.place >= 0) {
    rows.forEachAnswer(job.place, [&](HostJob &, size_t state, bool taken,
                                      int64_t position) {
      landed[state] = taken;
      noteAnswer(job, job.states[state], taken, position);
    });
    freeBox(job.place);
  }
  finish(job, landed);
  return true;
}

bool AsynchronousConsolidator::landAndStart() {
  bool any = noteChanges();
  while (std::unique_ptr<HostJob> job = pipeline->tryTake()) {
    ended.push_back(std::move(job));
    any = true;
  }
  any |= std::erase_if(ended, [&](const std::unique_ptr<HostJob> &job) {
           return land(*job);
         }) > 0;
  // Time alone makes nothing ready. Without mailboxes nothing lands any more:
  // what is under way is dropped, and nothing new begins.
  if (!any || !hasBoxes())
    return any;
  const auto epochs = [this](int32_t layer, int32_t slot) {
    return rows.epoch(layer, slot);
  };
  while (std::optional<consolidation::Job> job =
             scheduler.next(now(), epochs))
    pipeline->submit(rows.prepare(std::move(*job)));
  return true;
}

void AsynchronousConsolidator::drain(CUstream stream) {
  for (;;) {
    {
      std::lock_guard lock(mutex);
      if (failed)
        return;
      poll();
      if (failed || scheduler.underWay() == 0)
        return;
    }
    rows.swapIn(stream);
    SS_CUDA(context->driver(), cuStreamSynchronize(stream));
    std::this_thread::sleep_for(kShortest);
  }
}

} // namespace sinkstate::runtime::cuda
