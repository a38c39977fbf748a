//===- Report.cpp - What ss-run says about a measurement ------------------===//

#include "Report.h"

#include "LayersJson.h"

#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace ss_run;

namespace {

__attribute__((format(printf, 2, 3))) void append(std::string &text,
                                                  const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[512];
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  text += line;
}

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

void appendBytes(std::string &text, const StateBytes &bytes) {
  const double dense = static_cast<double>(bytes.dense);
  auto row = [&](const char *name, double value) {
    append(text, "%-28s %12.0f %12.0f %11.1f %%\n", name, dense, value,
           percent(value, dense));
  };
  row("state bytes, live mean", bytes.liveMean);
  row("state bytes, live peak", static_cast<double>(bytes.livePeak));
  row("state bytes, allocated peak", static_cast<double>(bytes.allocatedPeak));
  if (bytes.snapshots > 0)
    row("snapshot bytes, at the end", static_cast<double>(bytes.snapshots));
}

void appendSeconds(std::string &text, const char *name, double dense,
                   double compressed) {
  append(text, "%-28s %12.3f %12.3f %11.1f %%\n", name, dense, compressed,
         percent(compressed, dense));
}

nlohmann::ordered_json ranksOf(const Measurement &measurement) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::object();
  for (const auto &[type, summary] : measurement.ranks)
    ranks[type] = {{"mean", summary.mean},
                   {"max", summary.max},
                   {"dense_share", summary.denseShare}};
  return ranks;
}

} // namespace

std::string ss_run::formatTable(const Measurement &measurement,
                                const RunOptions &options,
                                const std::string &policy) {
  std::string text;
  append(text, "%s: %d %s of %d tokens, %d %s, states on %s\n",
         options.model.c_str(), options.batch,
         options.batch == 1 ? "request" : "requests", options.tokens,
         options.threads, options.threads == 1 ? "thread" : "threads",
         deviceName(options).c_str());
  text += policy + ", " + describeEngine(options) + "\n\n";
  if (options.prefill > 0)
    append(text, "the first %d tokens dense, then compressed\n",
           options.prefill);
  if (options.from > 0)
    append(text, "quality, bytes and ranks from token %d on\n", options.from);
  if (options.prefill > 0 || options.from > 0)
    text += '\n';
  append(text, "%-28s %12s %12s %13s\n", "", "dense", "compressed", "");
  append(text, "%-28s %12.4f %12.4f %+13.4f\n", "bits per byte",
         measurement.bitsPerByteDense, measurement.bitsPerByteCompressed,
         measurement.bitsPerByteCompressed - measurement.bitsPerByteDense);
  append(text, "%-28s %12s %12.3g\n", "KL(dense || compressed), nats", "",
         measurement.divergence);
  appendBytes(text, measurement.bytes);
  appendSeconds(text, "seconds in the state kernels", measurement.dense.states,
                measurement.compressed.states);
  appendSeconds(text, "seconds in all", measurement.dense.all,
                measurement.compressed.all);
  append(text, "\n%-28s %12s %12s %13s\n", "stored rank", "mean", "max",
         "held dense");
  for (const auto &[type, summary] : measurement.ranks)
    append(text, "  %-26s %12.1f %12d %11.1f %%\n", type.c_str(), summary.mean,
           summary.max, 100 * summary.denseShare);
  append(text,
         "\n%lld compactions, %lld folds of dense states, %lld "
         "consolidations\n",
         static_cast<long long>(measurement.statistics.compactions),
         static_cast<long long>(measurement.statistics.folds),
         static_cast<long long>(measurement.statistics.consolidations));
  if (measurement.tightenedStates > 0)
    append(text,
           "%d states have dropped components that the policy would have kept, "
           "for lack of rows\n",
           measurement.tightenedStates);
  return text;
}

std::string ss_run::formatTiming(const Measurement &measurement,
                                 const PhaseTimes &phases) {
  std::string text;
  append(text, "\n%-28s %12s\n", "phase", "seconds");
  auto row = [&](const char *name, double seconds) {
    append(text, "%-28s %12.3f\n", name, seconds);
  };
  row("load the model", phases.load);
  row("import and compile", phases.compile);
  row("make the engines", phases.engines);
  if (phases.start) {
    row("  start, nothing cached", phases.start->cold);
    row("  start, kernels cached", phases.start->cached);
    row("  the same, beside another", phases.start->beside);
    append(text, "%-28s %12d\n", "  kernels compiled", phases.start->kernels);
  }
  row("decode", phases.decode);
  if (phases.init > 0)
    row("  compressed: initialise", phases.init);
  row("  compressed: decode", measurement.statistics.decode_seconds);
  row("  compressed: compact", measurement.statistics.compact_seconds);
  row("  compressed: consolidate", measurement.statistics.consolidate_seconds);
  return text;
}

std::string ss_run::formatJson(const Measurement &measurement,
                               const RunOptions &options,
                               const std::string &policy,
                               const std::vector<ss_tools::PackageLayer> &layers,
                               const PhaseTimes &phases,
                               const std::string &version) {
  nlohmann::ordered_json root;
  root["version"] = version;
  root["policy"] = policy;
  root["options"] = {
      {"model", options.model},
      {"text", options.text},
      {"package", options.package},
      {"dense_package", options.densePackage},
      {"device", deviceName(options)},
      {"row_capacity", options.rowCapacity},
      {"tokens", options.tokens},
      {"prefill", options.prefill},
      {"from", options.from},
      {"dense", options.dense == DenseRun::Compiled ? "compiled" : "reference"},
      {"dense_fallback", options.denseFallback},
      {"consolidate", options.consolidateEvery},
      {"batch", options.batch},
      {"threads", options.threads},
      {"generate", options.generate},
      {"seed", options.seed}};
  if (options.package.empty()) {
    root["options"]["policy"] = toString(options.policy);
    root["options"]["active"] = options.active;
    root["options"]["buffer"] = options.buffer;
    root["options"]["storage"] = toString(options.storage);
    root["options"]["rounding"] = toString(options.rounding);
    root["options"]["core"] = toString(options.core);
  }
  root["states"] = ss_tools::asJson(layers);
  root["bits_per_byte"] = {{"dense", measurement.bitsPerByteDense},
                           {"compressed", measurement.bitsPerByteCompressed}};
  root["kl_nats"] = measurement.divergence;
  root["state_bytes"] = {{"dense", measurement.bytes.dense},
                         {"live_mean", measurement.bytes.liveMean},
                         {"live_peak", measurement.bytes.livePeak},
                         {"allocated_peak", measurement.bytes.allocatedPeak},
                         {"snapshots", measurement.bytes.snapshots}};
  root["state_seconds"] = {{"dense", measurement.dense.states},
                           {"compressed", measurement.compressed.states}};
  root["total_seconds"] = {{"dense", measurement.dense.all},
                           {"compressed", measurement.compressed.all}};
  root["rank"] = ranksOf(measurement);
  root["compactions"] = measurement.statistics.compactions;
  root["folds"] = measurement.statistics.folds;
  root["consolidations"] = measurement.statistics.consolidations;
  root["tightened_states"] = measurement.tightenedStates;
  root["went_dense"] = measurement.statistics.went_dense;
  root["went_factored"] = measurement.statistics.went_factored;
  if (options.prefill > 0)
    root["init_seconds"] = phases.init;
  if (phases.start)
    root["start_seconds"] = {{"cold", phases.start->cold},
                             {"cached", phases.start->cached},
                             {"beside", phases.start->beside},
                             {"kernels", phases.start->kernels}};
  if (options.generate > 0)
    root["generated_bytes"] = std::vector<int>();
  for (unsigned char byte : measurement.generated)
    root["generated_bytes"].push_back(static_cast<int>(byte));
  // Paths may hold any bytes: what is not UTF-8 is shown as U+FFFD.
  return root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}
