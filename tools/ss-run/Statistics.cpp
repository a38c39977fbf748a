//===- Statistics.cpp - What an engine counted, for --stats ---------------===//

#include "Statistics.h"

#include <cstdio>

namespace ss_run {
namespace {

template <typename... Values>
void append(std::string &text, const char *format, Values... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  text += line;
}

void addLayer(std::string &text, const ss_layer_info &info,
              const ss_layer_statistics &layer) {
  const int64_t factored = layer.states - layer.dense_states;
  append(text, "%-8d %-8s %7lld %7lld %10.1f %9d %12lld %12lld %12lld %7d\n",
         info.index, info.type, static_cast<long long>(layer.states),
         static_cast<long long>(layer.dense_states),
         factored > 0 ? double(layer.rank_sum) / double(factored) : 0.0,
         layer.rank_max, static_cast<long long>(layer.live_bytes),
         static_cast<long long>(layer.allocated_bytes),
         static_cast<long long>(layer.dense_bytes), layer.status);
}

void addEngine(std::string &text, const ss_statistics &s) {
  auto count = [&](const char *name, int64_t value) {
    append(text, "%-32s %14lld\n", name, static_cast<long long>(value));
  };
  text += "\n";
  count("compactions", s.compactions);
  count("folds of dense states", s.folds);
  count("went dense", s.went_dense);
  count("came back to factors", s.went_factored);
  count("consolidations", s.consolidations);
  count("  components removed", s.components_removed);
  count("  started beside decoding", s.consolidations_started);
  count("  landed", s.consolidations_landed);
  count("  dropped", s.consolidations_dropped);
  count("  waits", s.consolidation_waits);
  append(text, "%-32s %14.2f\n", "  tokens late, mean",
         s.consolidations_landed > 0
             ? double(s.consolidation_lag_sum) / double(s.consolidations_landed)
             : 0.0);
  count("  tokens late, at most", s.consolidation_lag_max);
  count("bytes allocated", s.allocated_bytes);
  count("  of those used", s.used_bytes);
  count("  at most", s.allocated_peak);
  append(text, "%-32s %14.0f\n", "  mean of steps", s.mean_allocated_bytes);
  append(text, "%-32s %14.0f\n", "bytes live, mean of steps",
         s.mean_live_bytes);
  count("tightened for want of memory", s.tightened);
  count("refused for want of memory", s.refused);
  count("folded out of the range of f16", s.out_of_range);
}

} // namespace

tiny_hybrid::Result<std::string>
formatStatistics(const tiny_hybrid::EngineBackend &backend) {
  std::string text;
  append(text, "\n%-8s %-8s %7s %7s %10s %9s %12s %12s %12s %7s\n", "layer",
         "type", "states", "dense", "mean rank", "max rank", "live bytes",
         "allocated", "dense bytes", "status");
  for (size_t i = 0; i < backend.layers().size(); ++i) {
    ss_layer_statistics layer = {};
    layer.struct_size = sizeof layer;
    const ss_result result =
        ss_layer_get_statistics(backend.engine(), int32_t(i), &layer);
    if (result == SS_NOT_SUPPORTED) {
      text = "\n(the device does not tell of single layers)\n";
      break;
    }
    if (result != SS_OK)
      return tiny_hybrid::Error{std::string("statistics: ") + ss_last_error()};
    addLayer(text, backend.layers()[i], layer);
  }
  auto statistics = backend.statistics();
  if (!statistics)
    return statistics.takeError();
  addEngine(text, *statistics);
  return text;
}

} // namespace ss_run
