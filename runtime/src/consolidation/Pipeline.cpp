//===- Pipeline.cpp - Three stages on their own threads -------------------===//

#include "consolidation/Pipeline.h"

#include "observe/Nvtx.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>

#include <pthread.h>
#include <sched.h>

namespace sinkstate::consolidation {
namespace {

/// Tasks that wait for an SVD thread: enough that none is idle while the next
/// are put in.
constexpr size_t kTasksPerThread = 4;

} // namespace

void PipelineOptions::pin(std::thread &thread, size_t index) const {
  if (cpus.empty())
    return;
  const int32_t cpu = cpus[index % cpus.size()];
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(size_t(cpu), &set);
  const int error =
      pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
  if (error != 0 && warn)
    warn("a thread is not bound to processor " + std::to_string(cpu) + " (" +
         std::strerror(error) + "): it runs on any");
}

Pipeline::Pipeline(StateTransfer &transfer, const PipelineOptions &given,
                   std::function<void(StateCopy &)> svd)
    : transfer(transfer), options(given), svd(std::move(svd)),
      toDownload(options.places), toUpload(options.places),
      finished(options.places),
      toDecompose(kTasksPerThread * size_t(options.svdThreads)) {
  try {
    jobs.reserve(options.places);
    start(&Pipeline::runDownloads);
    start(&Pipeline::runUploads);
    for (int32_t i = 0; i < options.svdThreads; ++i)
      start(&Pipeline::runSvds);
  } catch (...) {
    stop();
    throw;
  }
}

void Pipeline::start(void (Pipeline::*run)()) {
  threads.emplace_back([this, run] { (this->*run)(); });
  options.pin(threads.back(), threads.size() - 1);
}

Pipeline::~Pipeline() { stop(); }

void Pipeline::stop() {
  toDownload.close();
  toDecompose.close();
  toUpload.close();
  finished.close();
  for (std::thread &thread : threads)
    thread.join();
  threads.clear();
}

void Pipeline::submit(std::unique_ptr<HostJob> job) {
  HostJob *raw = job.get();
  raw->left = int64_t(raw->states.size());
  jobs.push_back(std::move(job));
  toDownload.push(raw);
}

std::unique_ptr<HostJob> Pipeline::release(HostJob *done) {
  auto found = std::find_if(jobs.begin(), jobs.end(),
                            [&](const auto &job) { return job.get() == done; });
  std::unique_ptr<HostJob> job = std::move(*found);
  jobs.erase(found);
  // As if none had been overtaken: it is what such a job is expected to take.
  const auto all = double(job->states.size());
  const double ran = all - double(job->skipped);
  job->job.work = ran > 0 ? 1e-9 * double(job->nanoseconds) * all / ran : -1;
  return job;
}

std::unique_ptr<HostJob> Pipeline::tryTake() {
  std::optional<HostJob *> done = finished.tryPop();
  return done ? release(*done) : nullptr;
}

std::unique_ptr<HostJob> Pipeline::take() {
  if (jobs.empty())
    return nullptr;
  std::optional<HostJob *> done = finished.pop();
  return done ? release(*done) : nullptr;
}

void Pipeline::runDownloads() {
  while (std::optional<HostJob *> job = toDownload.pop()) {
    {
      const runtime::NvtxRange range("sinkstate download");
      transfer.download(**job);
    }
    // The job may be at its end, and gone, once its last task is in.
    const size_t states = (*job)->states.size();
    for (size_t i = 0; i < states; ++i)
      if (!toDecompose.push({*job, i}))
        return;
  }
}

void Pipeline::runSvds() {
  while (std::optional<SvdTask> task = toDecompose.pop()) {
    StateCopy &state = task->job->states[task->state];
    const ReadStage stage = *state.stage;
    if (stage == ReadStage::cancelled ||
        !transfer.isWanted(*task->job, state)) {
      ++task->job->skipped;
    } else if (stage == ReadStage::copied) {
      const runtime::NvtxRange range("sinkstate SVD");
      const auto begin = std::chrono::steady_clock::now();
      try {
        svd(state);
        state.done = true;
      } catch (const std::exception &) {
        // No memory: the state stays as it is, and comes again after a
        // compaction.
      }
      task->job->nanoseconds +=
          std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::steady_clock::now() - begin)
              .count();
    }
    if (task->job->left.fetch_sub(1) == 1 && !toUpload.push(task->job))
      return;
  }
}

void Pipeline::runUploads() {
  while (std::optional<HostJob *> job = toUpload.pop()) {
    {
      const runtime::NvtxRange range("sinkstate upload");
      transfer.upload(**job);
    }
    if (!finished.push(*job))
      return;
  }
}

void Pipeline::decompose(StateCopy &state) {
  const int64_t width = state.dk + state.dv;
  if (state.dense) {
    const int64_t most = std::min(state.dk, state.dv);
    state.rows.resize(size_t(most * width));
    state.weights.resize(size_t(most));
    state.result = factorize(state.matrix.data(), state.dk, state.dv,
                             state.truncation, state.rows.data(),
                             state.weights.data());
    return;
  }
  if (!std::all_of(state.weights.begin(), state.weights.end(),
                   [](float w) { return std::isfinite(w); })) {
    state.result = {SvdStatus::notFinite, 0};
    return;
  }
  state.truncation.largest =
      state.weights.empty()
          ? 0
          : *std::max_element(state.weights.begin(), state.weights.end());
  state.result = consolidate(state.rows.data() + state.active * width,
                             state.weights.data() + state.active,
                             state.count - state.active, state.dk, state.dv,
                             state.truncation);
}

} // namespace sinkstate::consolidation
