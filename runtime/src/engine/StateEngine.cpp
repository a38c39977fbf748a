//===- StateEngine.cpp - Options and the choice of a device ---------------===//

#include "engine/StateEngine.h"

#include "capi/Failure.h"
#include "cuda/CudaEngine.h"
#include "engine/Engine.h"

#include <sched.h>

#include <algorithm>

namespace sinkstate::runtime {
namespace {

constexpr int32_t kDeviceDecides = -1;
constexpr int32_t kConsolidateEvery = 4;
/// The thread library ends the process when it cannot make a thread.
constexpr int32_t kMostThreads = 1024;

void checkCommon(const ss_engine_options &options) {
  if (options.slots < 1)
    fail(SS_INVALID_ARGUMENT, "options.slots is ", options.slots,
         ", expected at least 1");
  if (options.threads < 0 || options.threads > kMostThreads)
    fail(SS_INVALID_ARGUMENT, "options.threads is ", options.threads,
         ", expected 0 (all processors) to ", kMostThreads);
  if (options.device != SS_DEVICE_CPU && options.device != SS_DEVICE_CUDA)
    fail(SS_INVALID_ARGUMENT, "options.device is ", options.device,
         ", expected SS_DEVICE_CPU (0) or SS_DEVICE_CUDA (1)");
  if (options.dense_fallback < kDeviceDecides || options.dense_fallback > 1)
    fail(SS_INVALID_ARGUMENT, "options.dense_fallback is ",
         options.dense_fallback,
         ", expected 0 or 1, or -1 for what the device does");
  if (options.consolidate_every < kDeviceDecides)
    fail(SS_INVALID_ARGUMENT, "options.consolidate_every is ",
         options.consolidate_every,
         ", expected 0 (never) or more, or -1 for what the device does");
  if (options.row_capacity < 0)
    fail(SS_INVALID_ARGUMENT, "options.row_capacity is ", options.row_capacity,
         ", expected 0 (every layer's bound) or a number of rows");
}

/// The thread library and the scheduler take no more.
constexpr int32_t kMostSvdThreads = 256;

void checkConsolidation(const ss_engine_options &options) {
  if (options.consolidation < kDeviceDecides ||
      options.consolidation > SS_CONSOLIDATION_DETERMINISTIC)
    fail(SS_INVALID_ARGUMENT, "options.consolidation is ",
         options.consolidation,
         ", expected an ss_consolidation (0 to 3), or -1 for what the device "
         "does");
  if (options.consolidation_threads < 0 ||
      options.consolidation_threads > kMostSvdThreads)
    fail(SS_INVALID_ARGUMENT, "options.consolidation_threads is ",
         options.consolidation_threads, ", expected 0 (a quarter of the processors) to ",
         kMostSvdThreads);
  if (options.consolidation_lag < kDeviceDecides)
    fail(SS_INVALID_ARGUMENT, "options.consolidation_lag is ",
         options.consolidation_lag,
         ", expected 0 (results land behind the compaction) or -1 (before the "
         "next one)");
  const int32_t count = options.consolidation_cpu_count;
  if (count < 0 || (count > 0 && !options.consolidation_cpus))
    fail(SS_INVALID_ARGUMENT, "options.consolidation_cpu_count is ", count,
         options.consolidation_cpus ? "" : " and consolidation_cpus is null",
         ", expected the number of processors that consolidation_cpus names");
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  (void)sched_getaffinity(0, sizeof allowed, &allowed);
  for (int32_t i = 0; i < count; ++i) {
    const int32_t cpu = options.consolidation_cpus[i];
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(size_t(cpu), &allowed))
      fail(SS_INVALID_ARGUMENT, "options.consolidation_cpus[", i, "] is ", cpu,
           ", expected a processor that this process may run on");
  }
}

/// Rows to convert at once; more would be a mistake in the caller's units.
constexpr int32_t kMostBatch = 1 << 20;

void checkServing(const ss_engine_options &options) {
  if (options.max_batch < 0 || options.max_batch > kMostBatch)
    fail(SS_INVALID_ARGUMENT, "options.max_batch is ", options.max_batch,
         ", expected 0 (nothing is converted) to ", kMostBatch);
  if (options.reserved_slots < 0 || options.reserved_slots >= options.slots)
    fail(SS_INVALID_ARGUMENT, "options.reserved_slots is ",
         options.reserved_slots, ", expected 0 to ", options.slots - 1,
         ": fewer than options.slots");
  if (options.state_bytes_limit < 0)
    fail(SS_INVALID_ARGUMENT, "options.state_bytes_limit is ",
         options.state_bytes_limit, ", expected 0 (none) or bytes");
  if (options.exhaustion != SS_EXHAUSTION_REFUSE &&
      options.exhaustion != SS_EXHAUSTION_TIGHTEN)
    fail(SS_INVALID_ARGUMENT, "options.exhaustion is ", options.exhaustion,
         ", expected SS_EXHAUSTION_REFUSE (0) or SS_EXHAUSTION_TIGHTEN (1)");
  if (options.exhaustion == SS_EXHAUSTION_TIGHTEN &&
      options.consolidation == SS_CONSOLIDATION_DETERMINISTIC)
    fail(SS_INVALID_ARGUMENT,
         "options.exhaustion is SS_EXHAUSTION_TIGHTEN, expected "
         "SS_EXHAUSTION_REFUSE: in deterministic mode the memory that is left "
         "must not decide results");
}

void resolveForCpu(ss_engine_options &options) {
  if (options.row_capacity != 0)
    fail(SS_INVALID_ARGUMENT, "options.row_capacity is ", options.row_capacity,
         ", expected 0: the CPU device gives a state the rows it has; the "
         "policy of a layer bounds them");
  if (options.compaction_streams != 0)
    fail(SS_INVALID_ARGUMENT, "options.compaction_streams is ",
         options.compaction_streams,
         ", expected 0: the CPU device has no streams");
  if (options.device_ordinal != 0)
    fail(SS_INVALID_ARGUMENT, "options.device_ordinal is ",
         options.device_ordinal,
         ", expected 0: it chooses a GPU; set device to SS_DEVICE_CUDA");
  if (options.dense_fallback == kDeviceDecides)
    options.dense_fallback = 1;
  if (options.consolidate_every == kDeviceDecides)
    options.consolidate_every = kConsolidateEvery;
  if (options.consolidation == kDeviceDecides)
    options.consolidation = SS_CONSOLIDATION_INLINE;
  if (options.consolidation == SS_CONSOLIDATION_OFF)
    options.consolidate_every = 0;
}

/// Branches of a step's graph on which compactions run.
constexpr int32_t kCompactionStreams = 8;
constexpr int32_t kMostCompactionStreams = 16;

int32_t compactionStreams(int32_t given) {
  if (given < -1 || given > kMostCompactionStreams)
    fail(SS_INVALID_ARGUMENT, "options.compaction_streams is ", given,
         ", expected -1 (none), 0 (", kCompactionStreams, ") or up to ",
         kMostCompactionStreams);
  return given == 0 ? kCompactionStreams : given;
}

void resolveForCuda(ss_engine_options &options) {
  const bool fixedRows = options.row_capacity != 0;
  if (options.dense_fallback == kDeviceDecides)
    options.dense_fallback = !fixedRows;
  if (options.dense_fallback == 1 && fixedRows)
    fail(SS_INVALID_ARGUMENT, "options.dense_fallback is 1, expected 0 or -1: "
         "with options.row_capacity every state keeps the rows it has");
  if (fixedRows &&
      (options.state_bytes_limit != 0 || options.exhaustion != 0))
    fail(SS_INVALID_ARGUMENT, "options.state_bytes_limit or exhaustion is not "
         "0, expected 0: with options.row_capacity everything is allocated "
         "with the engine");
  if (options.consolidation == SS_CONSOLIDATION_INLINE)
    fail(SS_INVALID_ARGUMENT,
         "options.consolidation is SS_CONSOLIDATION_INLINE (1), expected "
         "another mode: on the CUDA device no decode call waits for the host; "
         "SS_CONSOLIDATION_DETERMINISTIC with consolidation_lag 0 gives the "
         "same results");
  // Whoever asks for the one gets the other.
  if (options.consolidation == kDeviceDecides)
    options.consolidation = options.consolidate_every > 0
                                ? SS_CONSOLIDATION_ASYNCHRONOUS
                                : SS_CONSOLIDATION_OFF;
  if (options.consolidation == SS_CONSOLIDATION_OFF)
    options.consolidate_every = 0;
  else if (options.consolidate_every == kDeviceDecides)
    options.consolidate_every = kConsolidateEvery;
  options.compaction_streams = compactionStreams(options.compaction_streams);
}

int32_t ownProcessors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0
             ? CPU_COUNT(&allowed)
             : 1;
}

} // namespace

int32_t svdThreadsFor(int32_t processors) {
  constexpr int32_t kMost = 8; // more are the caller's decision
  return std::clamp(processors / 4, 1, kMost);
}

ss_engine_options resolveOptions(const ss_engine_options &given) {
  ss_engine_options options = given;
  checkCommon(options);
  checkConsolidation(options);
  if (options.consolidation_threads == 0)
    options.consolidation_threads = svdThreadsFor(ownProcessors());
  checkServing(options);
  if (options.device == SS_DEVICE_CUDA)
    resolveForCuda(options);
  else
    resolveForCpu(options);
  return options;
}

void planEngine(const Package &package, const ss_engine_options &given,
                ss_memory_plan &plan) {
  const ss_engine_options options = resolveOptions(given);
  if (options.device == SS_DEVICE_CUDA)
    cuda::planMemory(package, options, plan);
  else
    planMemory(package, options, plan);
}

std::unique_ptr<StateEngine> createEngine(std::shared_ptr<const Package> package,
                                          const ss_engine_options &given) {
  const ss_engine_options options = resolveOptions(given);
  if (options.device == SS_DEVICE_CUDA)
    return std::make_unique<cuda::CudaEngine>(std::move(package), options,
                                              cuda::Driver::get());
  package->requireCpuCode();
  return std::make_unique<Engine>(std::move(package), options);
}

void failForLeftSlot(int32_t slot) {
  fail(SS_INVALID_ARGUMENT, "slot ", slot, " is of a step that was given up, "
       "expected ss_slot_reset or ss_slot_free first: its states are of no token");
}

void describeLayer(const LayerManifest &layer, ss_layer_info &info) {
  info.name = layer.name.c_str();
  info.type = layer.type.c_str();
  info.index = layer.index;
  info.heads = layer.heads;
  info.key_heads = layer.keyHeads;
  info.dv = layer.dv;
  info.dk = layer.dk;
  info.dense_form = layer.denseForm;
  info.sink_form = layer.sinkForm;
  info.channel_decay = layer.channelDecay;
  info.has_beta = layer.hasBeta;
  info.active = layer.active;
  info.buffer = layer.buffer;
  info.phase = layer.phase;
  info.compacts_before = layer.compactsBefore;
}

} // namespace sinkstate::runtime
