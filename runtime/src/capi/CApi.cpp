//===- CApi.cpp - The C functions of sinkstate.h --------------------------===//
//
// Checks pointers and struct sizes, then calls the engine. No exception leaves
// this file.
//
//===----------------------------------------------------------------------===//

#include "capi/CheckedArguments.h"
#include "observe/Log.h"
#include "package/Package.h"

#include "sinkstate/sinkstate.h"

using namespace sinkstate::runtime;

struct ss_package {
  std::shared_ptr<const Package> content;
};

const char *ss_last_error(void) { return lastError(); }

#define SS_TEXT_OF(x) #x
#define SS_TEXT(x) SS_TEXT_OF(x)
static_assert(SS_ABI_VERSION == 4u, "ss_version() names the ABI");
const char *ss_version(void) { return SS_TEXT(SS_PROJECT_VERSION) " (abi 4)"; }
int32_t ss_version_number(void) { return SS_PROJECT_VERSION_NUMBER; }
int32_t ss_abi_version(void) { return SS_ABI_VERSION; }

ss_result ss_package_open(const char *folder, ss_package **out) {
  return guarded([&] {
    require(folder, "folder");
    require(out, "out");
    *out = nullptr;
    *out = new ss_package{Package::open(folder)};
  });
}

ss_result ss_package_from_memory(const char *manifest, size_t size,
                                 ss_kernel_lookup lookup, void *context,
                                 ss_package **out) {
  return guarded([&] {
    require(manifest, "manifest");
    require(reinterpret_cast<const void *>(lookup), "lookup");
    require(out, "out");
    *out = nullptr;
    *out =
        new ss_package{Package::fromMemory({manifest, size}, lookup, context)};
  });
}

void ss_package_close(ss_package *package) { delete package; }

namespace {

ss_engine_options defaultOptions() {
  ss_engine_options options = {};
  options.struct_size = sizeof(ss_engine_options);
  options.slots = 1;
  options.dense_fallback = -1;
  options.consolidate_every = -1;
  options.consolidation = -1;
  options.consolidation_lag = -1;
  return options;
}

ss_engine_options readOptions(const ss_engine_options *options) {
  return readStruct(options, kFirstEngineOptions, defaultOptions(), "options",
                    "ss_engine_options");
}

} // namespace

// The macro of the header has this name.
#undef ss_engine_options_init
extern "C" SS_API void ss_engine_options_init(ss_engine_options *options);
/// For callers of the first header: it knew no more than these bytes.
void ss_engine_options_init(ss_engine_options *options) {
  ss_engine_options_init_sized(options, kFirstEngineOptions);
}

void ss_engine_options_init_sized(ss_engine_options *options,
                                  size_t struct_size) {
  if (!options)
    return;
  ss_engine_options defaults = defaultOptions();
  const size_t size = std::min(struct_size, sizeof defaults);
  defaults.struct_size = uint32_t(size);
  std::memcpy(options, &defaults, size);
}

ss_result ss_engine_plan(const ss_package *package,
                         const ss_engine_options *options,
                         ss_memory_plan *out) {
  return guarded([&] {
    require(package, "package");
    const ss_engine_options given = readOptions(options);
    ss_memory_plan plan = readStruct(out, kFirstMemoryPlan, ss_memory_plan{},
                                     "out", "ss_memory_plan");
    planEngine(*package->content, given, plan);
    const int64_t conversion =
        RowConversion::bytesFor(package->content->manifest(), given.max_batch);
    plan.worst_case += conversion;
    plan.expected += conversion;
    writeStruct(out, plan);
  });
}

ss_result ss_engine_create(const ss_package *package,
                           const ss_engine_options *options, ss_engine **out) {
  return guarded([&] {
    require(package, "package");
    require(out, "out");
    *out = nullptr;
    const ss_engine_options given = readOptions(options);
    auto engine = std::make_unique<ss_engine>();
    engine->engine = createEngine(package->content, given);
    if (given.max_batch > 0)
      engine->conversion = std::make_unique<RowConversion>(
          *engine->engine, given);
    *out = engine.release();
    writeLog(SS_LOG_INFO, "engine", "model '",
             package->content->manifest().model, "', ", given.slots,
             " slots");
  });
}

void ss_engine_destroy(ss_engine *engine) { delete engine; }

int32_t ss_layer_count(const ss_engine *engine) {
  return engine ? engine->engine->layerCount() : 0;
}

ss_result ss_layer_get_info(const ss_engine *engine, int32_t layer,
                            ss_layer_info *out) {
  return guarded([&] {
    const EngineCall call(engine);
    requireStruct(out, "out", "ss_layer_info");
    engine->engine->layerInfo(layer, *out);
  });
}

ss_result ss_slot_alloc(ss_engine *engine, int32_t *slot, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    require(slot, "slot");
    *slot = engine->engine->allocateSlot(stream);
  });
}

ss_result ss_slot_free(ss_engine *engine, int32_t slot) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->freeSlot(slot);
  });
}

ss_result ss_slot_reset(ss_engine *engine, int32_t slot, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->resetSlot(slot, stream);
  });
}

ss_result ss_engine_set_sink(ss_engine *engine, int32_t layer,
                             const float *means, int64_t count) {
  return guarded([&] {
    const EngineCall call(engine);
    if (!means || count < 0)
      fail(SS_INVALID_ARGUMENT, means ? "count is negative" : "means is null",
           ", expected heads * dv mean values");
    engine->engine->setSink(layer, {means, size_t(count)});
  });
}

ss_result ss_engine_set_first_head(ss_engine *engine, int32_t layer,
                                   int32_t head) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->setFirstHead(layer, head);
  });
}

ss_result ss_slot_set_rounding_key(ss_engine *engine, int32_t slot,
                                   uint64_t key, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->setRoundingKey(slot, key, stream);
  });
}

ss_result ss_decode_layer(ss_engine *engine, int32_t layer,
                          const ss_decode_args *args) {
  return guarded([&] {
    const EngineCall call(engine);
    const NvtxRange range("sinkstate decode", nameOfLayer(engine, layer));
    decodeConverted(*engine->engine, engine->conversion.get(), layer,
                    readDecodeArgs(args), nullptr);
  });
}

ss_result ss_begin_step(ss_engine *engine, const int32_t *slots, int32_t batch,
                        void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    const NvtxRange range("sinkstate begin step");
    requireBatch(engine, slots, batch);
    engine->engine->beginStep({slots, size_t(batch)}, stream);
    if (engine->conversion)
      engine->conversion->stepBegins(nullptr);
  });
}

ss_result ss_end_step(ss_engine *engine, const int32_t *slots, int32_t batch,
                      void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    const NvtxRange range("sinkstate end step");
    requireBatch(engine, slots, batch);
    engine->engine->endStep({slots, size_t(batch)}, stream);
    if (engine->conversion)
      engine->conversion->stepEnds();
  });
}

ss_result ss_cancel_step(ss_engine *engine, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->leaveStep(stream);
    if (engine->conversion)
      engine->conversion->stepEnds();
  });
}

ss_result ss_engine_synchronize(ss_engine *engine, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->synchronize(stream);
  });
}

ss_result ss_engine_tend(ss_engine *engine, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->tend(stream);
  });
}

ss_result ss_state_densify(ss_engine *engine, int32_t layer, int32_t slot,
                           float *out) {
  return guarded([&] {
    const EngineCall call(engine);
    require(out, "out");
    engine->engine->densify(layer, slot, out);
  });
}

ss_result ss_state_ranks(const ss_engine *engine, int32_t layer, int32_t slot,
                         int32_t *ranks) {
  return guarded([&] {
    const EngineCall call(engine);
    require(ranks, "ranks");
    engine->engine->ranks(layer, slot, ranks);
  });
}

ss_result ss_state_status(const ss_engine *engine, int32_t layer, int32_t slot,
                          int32_t *status) {
  return guarded([&] {
    const EngineCall call(engine);
    require(status, "status");
    engine->engine->status(layer, slot, status);
  });
}

ss_result ss_engine_statistics(const ss_engine *engine, ss_statistics *out) {
  return guarded([&] {
    const EngineCall call(engine);
    readStruct(out, kFirstStatistics, ss_statistics{}, "out",
               "ss_statistics");
    ss_statistics now = {};
    engine->engine->statistics(now);
    now.conversion_bytes =
        engine->conversion ? engine->conversion->bytes() : 0;
    writeStruct(out, now);
  });
}

ss_result ss_device_malloc(ss_engine *engine, size_t bytes, void **out) {
  return guarded([&] {
    const EngineCall call(engine);
    require(out, "out");
    *out = nullptr;
    if (bytes == 0)
      fail(SS_INVALID_ARGUMENT, "bytes is 0, expected at least 1");
    *out = engine->engine->allocateMemory(bytes);
  });
}

ss_result ss_device_free(ss_engine *engine, void *memory) {
  return guarded([&] {
    const EngineCall call(engine);
    if (memory)
      engine->engine->freeMemory(memory);
  });
}

ss_result ss_device_copy_in(ss_engine *engine, void *to, const void *from,
                            size_t bytes, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    require(to, "to");
    require(from, "from");
    engine->engine->copyIn(to, from, bytes, stream);
  });
}

ss_result ss_device_copy_out(ss_engine *engine, void *to, const void *from,
                             size_t bytes, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    require(to, "to");
    require(from, "from");
    engine->engine->copyOut(to, from, bytes, stream);
  });
}
