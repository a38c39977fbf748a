//===- ServingApi.cpp - Rows of any type, statistics, messages ------------===//

#include "capi/CheckedArguments.h"
#include "observe/Log.h"

using namespace sinkstate::runtime;

namespace {

/// Those that kernels take as they are.
std::span<const int32_t> plainSlots(const ss_engine &engine, const ss_rows &rows) {
  const auto *slots = static_cast<const int32_t *>(rows.slots);
  requireBatch(&engine, slots, rows.batch);
  return {slots, size_t(rows.batch)};
}

} // namespace

ss_result ss_begin_step_rows(ss_engine *engine, const ss_rows *rows) {
  return guarded([&] {
    const EngineCall call(engine);
    const NvtxRange range("sinkstate begin step");
    requireStruct(rows, "rows", "ss_rows");
    const bool converts = needsConversion(*rows);
    engine->engine->beginStep(
        converts ? requireConversion(engine->conversion.get()).slotsToBegin(
                       *engine->engine, *rows)
                 : plainSlots(*engine, *rows),
        rows->stream);
    if (engine->conversion)
      engine->conversion->stepBegins(converts ? rows : nullptr);
  });
}

ss_result ss_end_step_rows(ss_engine *engine, const ss_rows *rows) {
  return guarded([&] {
    const EngineCall call(engine);
    const NvtxRange range("sinkstate end step");
    requireStruct(rows, "rows", "ss_rows");
    engine->engine->endStep(
        needsConversion(*rows)
            ? requireConversion(engine->conversion.get()).slots(*rows)
            : plainSlots(*engine, *rows),
        rows->stream);
    if (engine->conversion)
      engine->conversion->stepEnds();
  });
}

ss_result ss_layer_get_statistics(const ss_engine *engine, int32_t layer,
                                  ss_layer_statistics *out) {
  return guarded([&] {
    const EngineCall call(engine);
    requireStruct(out, "out", "ss_layer_statistics");
    ss_layer_statistics now = {};
    now.struct_size = sizeof now;
    engine->engine->layerStatistics(layer, now);
    *out = now;
  });
}

ss_result ss_log_set(ss_log_callback callback, void *context,
                     ss_log_level most) {
  return guarded([&] {
    if (most < SS_LOG_OFF || most > SS_LOG_DEBUG)
      fail(SS_INVALID_ARGUMENT, "most is ", int(most),
           ", expected an ss_log_level (0 to 4)");
    setLog(callback, context, most);
  });
}
