//===- QualityTable.cpp - Several ways to keep states, side by side -------===//

#include "QualityTable.h"

#include "LayersJson.h"
#include "Quality.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

using namespace ss_run;
using namespace tiny_hybrid;

namespace {

constexpr int kQuarters = 4;

/// What is known of one variant so far.
struct Progress {
  Progress(const Model &model, const Variant &variant,
           const MeasureOptions &options)
      : variant(variant),
        decoder(model, *variant.states, options.batch, options.threads) {
    result.name = variant.name;
    result.layers = variant.layers;
    result.denseFallback = variant.denseFallback;
  }

  Status sample() {
    Result<ss_statistics> now = variant.probe->statistics();
    if (!now)
      return now.takeError();
    denseBytes = now->dense_bytes;
    liveSum += static_cast<double>(now->live_bytes);
    result.livePeak = std::max(result.livePeak, now->live_bytes);
    result.allocatedPeak = std::max(result.allocatedPeak, now->allocated_peak);
    return std::nullopt;
  }

  Status finish(int tokens) {
    Result<int> sound = variant.probe->check();
    if (!sound)
      return Error{variant.name + ": " + sound.takeError().message};
    result.bitsPerByte = all.bitsPerByteCompressed();
    result.divergence = all.divergence();
    for (int i = 0; i < kQuarters; ++i)
      result.quarters[size_t(i)] = quarters[i].divergence();
    result.liveMean = liveSum / tokens;
    return std::nullopt;
  }

  const Variant &variant;
  Decoder decoder;
  Quality all, quarters[kQuarters];
  VariantQuality result;
  int64_t denseBytes = 0;
  double liveSum = 0;
};

std::span<const float> rowOf(const Matrix &logits, int row) {
  return {logits.data() + row * logits.cols(),
          static_cast<size_t>(logits.cols())};
}

/// Compares the logits of one step, whose next tokens are known now.
Status compare(Decoder &dense, Progress &progress, int step,
               const std::vector<uint8_t> &next, const MeasureOptions &options) {
  Quality &quarter =
      progress.quarters[int64_t(step - options.from) * kQuarters /
                        (options.tokens - options.from)];
  for (int request = 0; request < options.batch; ++request) {
    const auto exact = rowOf(dense.logits(), request);
    const auto other = rowOf(progress.decoder.logits(), request);
    if (!progress.all.add(exact, other, next[size_t(request)]) ||
        !quarter.add(exact, other, next[size_t(request)]))
      return Error{progress.variant.name + ", token " + std::to_string(step) +
                   ", request " + std::to_string(request) +
                   ": found logits that are not finite, expected finite ones "
                   "from this model"};
  }
  return std::nullopt;
}

std::string format(const char *pattern, double value) {
  char text[48];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// "core qr"; of several layer types perhaps "cores qr and svd".
std::string coresOf(const QualityTable &table) {
  std::set<std::string> cores;
  for (const VariantQuality &variant : table.variants)
    for (const ss_tools::PackageLayer &layer : variant.layers)
      if (!layer.core.empty())
        cores.insert(layer.core);
  std::string text;
  for (const std::string &core : cores)
    text += (text.empty() ? "" : " and ") + core;
  return (cores.size() > 1 ? ", cores " : ", core ") + text;
}

/// What was run, so that tables of other runs can be told apart.
std::string headOf(const QualityTable &table) {
  RunOptions run = table.run;
  size_t withDense = 0;
  for (const VariantQuality &variant : table.variants)
    withDense += variant.denseFallback;
  run.denseFallback = withDense > 0;
  std::string text = run.model + ", " + run.text + ": " +
                     std::to_string(table.batch) +
                     (table.batch == 1 ? " request of " : " requests of ") +
                     std::to_string(table.tokens) + " tokens, states on " +
                     deviceName(run) + coresOf(table) + ", " +
                     describeEngine(run);
  if (withDense > 0 && withDense < table.variants.size())
    text += " but for rows of 8 bits alone";
  if (run.prefill > 0)
    text += ", the first " + std::to_string(run.prefill) + " tokens dense";
  return text + "\n\n";
}

} // namespace

Result<QualityTable>
ss_run::measureQuality(const Model &model, const TokenSource &text,
                       StateBackend &dense, const std::vector<Variant> &variants,
                       const MeasureOptions &options) {
  Decoder exact(model, dense, options.batch, options.threads);
  std::deque<Progress> all;
  for (const Variant &variant : variants)
    all.emplace_back(model, variant, options);
  std::vector<uint8_t> tokens = text.at(0);
  for (int step = 0; step < options.tokens; ++step) {
    if (Status status = exact.step(tokens))
      return std::move(*status);
    const std::vector<uint8_t> next = text.at(step + 1);
    for (Progress &progress : all) {
      if (Status status = progress.decoder.step(tokens))
        return std::move(*status);
      if (step < options.from)
        continue;
      if (Status status = progress.sample())
        return std::move(*status);
      if (Status status = compare(exact, progress, step, next, options))
        return std::move(*status);
    }
    tokens = next;
    if (options.progress)
      options.progress(step + 1);
  }
  QualityTable table;
  table.tokens = options.tokens;
  table.from = options.from;
  table.batch = options.batch;
  for (Progress &progress : all) {
    if (Status status = progress.finish(options.tokens - options.from))
      return std::move(*status);
    table.bitsPerByteDense = progress.all.bitsPerByteDense();
    table.denseBytes = progress.denseBytes;
    table.variants.push_back(std::move(progress.result));
  }
  return table;
}

std::string ss_run::formatQuality(const QualityTable &table) {
  std::string text = headOf(table);
  if (table.from > 0)
    text += "Quality and bytes from token " + std::to_string(table.from) +
            " on\n\n";
  text += "| policy and storage | bits per byte (dense " +
      format("%.4f", table.bitsPerByteDense) +
      ") | KL to dense, nats | by quarters | live bytes, mean | live bytes, "
      "peak | allocated, peak |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  auto bytes = [&](double value) {
    return format("%.0f", value) + " (" +
           format("%.1f", 100 * value / double(table.denseBytes)) + " %)";
  };
  for (const VariantQuality &variant : table.variants) {
    std::string quarters;
    for (double quarter : variant.quarters)
      quarters += (quarters.empty() ? "" : ", ") + format("%.5f", quarter);
    text += "| " + variant.name + " | " + format("%.4f", variant.bitsPerByte) +
            " | " + format("%.5f", variant.divergence) + " | " + quarters +
            " | " + bytes(variant.liveMean) + " | " +
            bytes(double(variant.livePeak)) + " | " +
            format("%.0f", double(variant.allocatedPeak)) + " |\n";
  }
  return text;
}

std::string ss_run::formatQualityJson(const QualityTable &table,
                                      const std::string &version) {
  nlohmann::ordered_json root;
  root["format"] = "ss-run-quality";
  root["version"] = 1;
  root["ss_version"] = version;
  root["model"] = table.run.model;
  root["text"] = table.run.text;
  root["device"] = deviceName(table.run);
  root["dense"] =
      table.run.dense == DenseRun::Compiled ? "compiled" : "reference";
  root["dense_package"] = table.run.densePackage;
  root["sink"] = table.run.sink;
  root["core"] = toString(table.run.core);
  root["consolidate"] = table.run.consolidateEvery;
  root["consolidation"] = consolidationName(table.run);
  root["row_capacity"] = table.run.rowCapacity;
  root["prefill"] = table.run.prefill;
  root["threads"] = table.run.threads;
  root["tokens"] = table.tokens;
  root["from"] = table.from;
  root["batch"] = table.batch;
  root["bits_per_byte_dense"] = table.bitsPerByteDense;
  root["dense_bytes"] = table.denseBytes;
  root["variants"] = nlohmann::ordered_json::array();
  for (const VariantQuality &variant : table.variants)
    root["variants"].push_back({{"name", variant.name},
                                {"states", ss_tools::asJson(variant.layers)},
                                {"dense_fallback", variant.denseFallback},
                                {"bits_per_byte", variant.bitsPerByte},
                                {"kl_nats", variant.divergence},
                                {"kl_nats_by_quarter", variant.quarters},
                                {"live_mean", variant.liveMean},
                                {"live_peak", variant.livePeak},
                                {"allocated_peak", variant.allocatedPeak}});
  // Paths may hold any bytes: what is not UTF-8 is shown as U+FFFD.
  return root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}
