//===- BenchReport.cpp - Tables and JSON of a measurement -----------------===//

#include "BenchReport.h"

#include "LayersJson.h"

#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace ss_bench;
using nlohmann::ordered_json;
using sinkstate::runtime::isOfStates;
using sinkstate::runtime::MemoryPart;

namespace {

__attribute__((format(printf, 2, 3))) void append(std::string &text,
                                                  const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

std::string threeDigits(double value) {
  std::string text;
  append(text, "%.3f", value);
  return text;
}

/// "mamba_ssm f32 3.12x, ..." or "-".
std::string ratiosOf(const BenchResult &result, const BatchResult &batch,
                     const Measured &m, const Baselines &baselines) {
  std::string text;
  auto add = [&](const std::string &name, double time) {
    append(text, "%s%s %.2fx", text.empty() ? "" : ", ", name.c_str(),
           time / m.step);
  };
  for (DenseForm form : kDenseForms)
    if (m.denseSteps[form] > 0)
      add(result.nameOf(form), m.denseSteps[form]);
  for (const Baseline *baseline : baselines.of(result.shape, batch.batch))
    add(baseline->kernel + " " + baseline->state, baseline->microseconds);
  return text.empty() ? "-" : text;
}

void appendTimes(std::string &text, const char *name,
                 const BenchResult &result, const Measured &m,
                 const std::string &ratios) {
  const double share = result.copyBandwidth > 0
                           ? m.decodeBytes / (m.decodeOnly * 1e-6) /
                                 result.copyBandwidth
                           : 0;
  append(text,
         "| %d | %s | %s | %.2f | %.2f | %.2f (%.1f %%) | %.1f / %.1f | %.2f | "
         "%.2f (%.0f %%) | %.0f | %.3f | %s |\n",
         m.batch, name, m.staggered ? "on" : "off", m.step, m.decodeOnly,
         m.compaction(), 100 * m.compactionShare(), m.keptRows, m.blockRows,
         m.decodeBytes / 1e6, m.decodeBytes / m.decodeOnly / 1e6, 100 * share,
         m.stepMedian, m.stepMedian > 0 ? m.stepP99 / m.stepMedian : 0,
         ratios.c_str());
}

/// Whether there were compactions that nothing says a bound of.
bool isUnjudged(const Measured &m) {
  return m.judgedCompactions < m.checkedCompactions;
}

/// "-" where no compaction was judged.
std::string compactionOf(const Measured &m) {
  return m.judgedCompactions > 0 ? threeDigits(m.compactionError) : "-";
}

void appendSizes(std::string &text, const char *name, const Measured &m) {
  append(text,
         "| %d | %s | %s | %.1f | %.1f | %.1f %% | %.2f | %.3f | %.3f, %.3f, "
         "%.3f | %.3f | %.1e | %.1e | %s | %s |\n",
         m.batch, name, m.staggered ? "on" : "off", m.meanRank,
         m.meanRankAfter, 100 * m.heldDense, m.compactionsPerState, m.stateBytes / m.denseBytes,
         m.usedBytes / m.denseBytes, m.allocatedBytes / m.denseBytes,
         m.peakBytes / m.denseBytes, m.decodeFlops / m.decodeBytes,
         m.outputError, m.stateError, compactionOf(m).c_str(),
         !isCorrect(m) ? "**no**" : isUnjudged(m) ? "decodes alone" : "yes");
}

/// What remains of a purpose where nothing but states takes memory.
double floorOf(const MemoryPart &part) {
  return isOfStates(part.purpose) ? double(part.bytes) : 0;
}

void appendMemory(std::string &text, const char *name, const Measured &m) {
  double bytes = 0, floor = 0;
  auto line = [&](const std::string &purpose, double all, double least) {
    append(text, "| %d | %s | %s | %s | %.1f | %.4f | %.4f |\n", m.batch, name,
           m.staggered ? "on" : "off", purpose.c_str(), all / 1e6,
           all / m.denseBytes, least / m.denseBytes);
  };
  for (const MemoryPart &part : m.memory) {
    bytes += double(part.bytes), floor += floorOf(part);
    if (part.bytes != 0)
      line(std::string(part.purpose), double(part.bytes), floorOf(part));
  }
  line("**all**", bytes, floor);
}

ordered_json memoryAsJson(const Measured &m) {
  ordered_json parts = ordered_json::array();
  for (const MemoryPart &part : m.memory)
    parts.push_back({{"purpose", part.purpose},
                     {"bytes", part.bytes},
                     {"of_dense", double(part.bytes) / m.denseBytes},
                     {"floor_bytes", int64_t(floorOf(part))}});
  return parts;
}

ordered_json asJson(const Measured &m) {
  return {{"batch", m.batch},
          {"data", m.data},
          {"staggered", m.staggered},
          {"step_us", m.step},
          {"decode_us", m.decodeOnly},
          {"compaction_us", m.compaction()},
          {"compaction_share", m.compactionShare()},
          {"whole_step_p50_us", m.stepMedian},
          {"whole_step_p99_us", m.stepP99},
          {"timed_steps", m.timedSteps},
          {"own_dense_us", m.denseSteps[DenseForm::Dense]},
          {"own_deferred_us", m.denseSteps[DenseForm::Deferred]},
          {"own_dense_f32_us", m.denseSteps[DenseForm::DenseF32]},
          {"held_dense", m.heldDense},
          {"rank_before", m.meanRank},
          {"rank_after", m.meanRankAfter},
          {"kept_rows", m.keptRows},
          {"block_rows", m.blockRows},
          {"compactions_per_state", m.compactionsPerState},
          {"decode_bytes", m.decodeBytes},
          {"compaction_bytes", m.compactBytes},
          {"decode_flops", m.decodeFlops},
          {"state_bytes", m.stateBytes},
          {"used_bytes", m.usedBytes},
          {"allocated_bytes", m.allocatedBytes},
          {"allocated_peak", m.peakBytes},
          {"tightened", m.tightened},
          {"dense_bytes", m.denseBytes},
          {"memory", memoryAsJson(m)},
          {"check",
           {{"output_error", m.outputError},
            {"state_error", m.stateError},
            {"compaction_error_of_allowed",
             m.judgedCompactions > 0 ? ordered_json(m.compactionError)
                                     : ordered_json(nullptr)},
            {"states", m.checkedStates},
            {"compactions", m.checkedCompactions},
            {"compactions_judged", m.judgedCompactions},
            {"correct", isCorrect(m)}}}};
}

ordered_json asJson(const Served &s) {
  return {{"batch", s.batch},
          {"data", s.data},
          {"staggered", s.staggered},
          {"consolidation", s.consolidation},
          {"steps", s.steps},
          {"p50_us", s.stepMedian},
          {"p99_us", s.stepP99},
          {"longest_us", s.stepLongest},
          {"rank_before", s.meanRank},
          {"rank_after", s.meanRankAfter},
          {"consolidations_landed", s.landed},
          {"consolidations_dropped", s.dropped},
          {"tightened", s.tightened},
          {"live_bytes", s.liveBytes},
          {"used_bytes", s.usedBytes},
          {"allocated_bytes", s.allocatedBytes},
          {"allocated_peak", s.peakBytes},
          {"dense_bytes", s.denseBytes}};
}

/// What is not known is null.
ordered_json asJson(const MachineFacts &machine) {
  ordered_json json;
  for (const auto &[key, value] : {std::pair("name", &machine.name),
                                   std::pair("cuda", &machine.cuda),
                                   std::pair("driver", &machine.driver)})
    json[key] = value->empty() ? ordered_json(nullptr) : ordered_json(*value);
  return json;
}

ordered_json asJson(const Baseline &baseline) {
  return {{"kernel", baseline.kernel},
          {"version", baseline.version},
          {"state", baseline.state},
          {"batch", baseline.batch},
          {"us", baseline.microseconds}};
}

} // namespace

const char *ss_bench::keyOf(DenseForm form) {
  const char *keys[] = {"own_dense", "own_deferred", "own_dense_f32"};
  return keys[size_t(form)];
}

std::string BenchResult::nameOf(DenseForm form) const {
  const std::string name =
      form == DenseForm::Deferred ? "own deferred" : "own dense";
  const std::string &of = denseStorage[form];
  return of.empty() || (of == "f32" && storage == "f32") ? name
                                                         : name + " " + of;
}

std::string ss_bench::formatHead(const BenchResult &result,
                                 const Baselines &baselines) {
  std::string text;
  const ShapeName &shape = result.shape;
  // Paths and lists of layers may be longer than a line of append().
  text += "`" + result.model + "`, ";
  append(text, "%d layers (the first: %s, %d heads, %d of keys, %d x %d), ",
         result.layers, shape.type.c_str(), shape.heads, shape.keyHeads,
         shape.dv, shape.dk);
  text += ss_tools::describe(result.states) + ", ranks `" + result.profile +
          "`, on " + result.device;
  append(text, "; copies move %.0f GB/s (read and written)\n",
         result.copyBandwidth / 1e9);
  for (const std::string &note : result.notes)
    append(text, "\n%s\n", note.c_str());
  if (!baselines.machine.empty())
    append(text, "\nBaselines: %s; copies move %.0f GB/s there\n",
           baselines.machine.c_str(), baselines.copyBandwidth / 1e9);
  std::string named;
  for (const Baseline *baseline : baselines.of(shape, 0)) {
    const std::string name = baseline->kernel + " " + baseline->version;
    if (named.find(name) == std::string::npos)
      named += "* " + name + "\n";
  }
  for (const std::string &reason : baselines.missing)
    named += "* not run: " + reason + "\n";
  return named.empty() ? text : text + "\n" + named;
}

std::string ss_bench::formatTimeHeader() {
  return "\n| batch | data | staggered | us per layer and step | decode alone "
         "| compaction | rows kept / of a block | decode MB | decode TB/s (of "
         "the copy's) | us of a whole step | P99 / P50 | times less than |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
}

std::string ss_bench::formatTimes(const BenchResult &result,
                                  const BatchResult &batch,
                                  const Baselines &baselines) {
  std::string text;
  for (const Measured &m : batch.ours)
    appendTimes(text, m.data.c_str(), result, m,
                ratiosOf(result, batch, m, baselines));
  for (DenseForm form : kDenseForms)
    if (const auto &dense = batch.dense[form])
      appendTimes(text, result.nameOf(form).c_str(), result, *dense, "-");
  return text;
}

std::string ss_bench::formatSizes(const BenchResult &result) {
  std::string text =
      "\n| batch | data | staggered | mean rank | after a period | held "
      "dense | compactions per state | states / dense f32 | used, allocated, peak / dense f32 | flops a byte | "
      "output error | state error | compaction error / allowed | correct |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const BatchResult &batch : result.batches) {
    for (const Measured &m : batch.ours)
      appendSizes(text, m.data.c_str(), m);
    for (DenseForm form : kDenseForms)
      if (const auto &dense = batch.dense[form])
        appendSizes(text, result.nameOf(form).c_str(), *dense);
  }
  return text;
}

std::string ss_bench::formatMemory(const BenchResult &result) {
  std::string text =
      "\n| batch | data | staggered | memory for | MB | of dense f32 | floor |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const BatchResult &batch : result.batches) {
    for (const Measured &m : batch.ours)
      appendMemory(text, m.data.c_str(), m);
    for (DenseForm form : kDenseForms)
      if (const auto &dense = batch.dense[form])
        appendMemory(text, result.nameOf(form).c_str(), *dense);
  }
  return text;
}

std::string ss_bench::formatServed(const BenchResult &result) {
  if (result.served.empty())
    return "";
  std::string text =
      "\n| batch | data | staggered | consolidation | steps | P50 us | P99 us | "
      "P99 / P50 | longest us | mean rank, after | landed, dropped | tightened | "
      "live, used, allocated, peak / dense f32 |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Served &s : result.served)
    append(text,
           "| %d | %s | %s | %s | %lld | %.0f | %.0f | %.3f | %.0f | %.1f, "
           "%.1f | %lld, %lld | %lld | %.3f, %.3f, %.3f, %.3f |\n",
           s.batch, s.data.c_str(), s.staggered ? "on" : "off",
           s.consolidation.c_str(), (long long)(s.steps), s.stepMedian,
           s.stepP99, s.stepMedian > 0 ? s.stepP99 / s.stepMedian : 0,
           s.stepLongest, s.meanRank, s.meanRankAfter, (long long)(s.landed),
           (long long)(s.dropped), (long long)(s.tightened),
           s.liveBytes / s.denseBytes, s.usedBytes / s.denseBytes,
           s.allocatedBytes / s.denseBytes, s.peakBytes / s.denseBytes);
  return text;
}

std::string ss_bench::formatStart(const BenchResult &result) {
  std::string text;
  if (const auto &start = result.start)
    append(text,
           "\n| model | layers | graph to package s | GPU kernels compiled | "
           "cold s | cached s | cached, beside another engine s |\n"
           "|---|---|---|---|---|---|---|\n"
           "| %s | %d | %s | %d | %.3f | %.3f | %.3f |\n",
           result.model.c_str(), start->layers,
           start->compile > 0 ? threeDigits(start->compile).c_str() : "-",
           start->kernels, start->cold, start->cached, start->beside);
  return text;
}

std::string ss_bench::formatJson(const BenchResult &result,
                                 const Baselines &baselines) {
  ordered_json root;
  root["model"] = result.model;
  root["storage"] = result.storage;
  root["states"] = ss_tools::asJson(result.states);
  root["profile"] = result.profile;
  root["device"] = result.device;
  root["machine"] = asJson(result.machine);
  root["layers"] = result.layers;
  const ShapeName &shape = result.shape;
  root["shape"] = {{"type", shape.type},
                   {"heads", shape.heads},
                   {"key_heads", shape.keyHeads},
                   {"dv", shape.dv},
                   {"dk", shape.dk}};
  root["copy_bytes_per_second"] = result.copyBandwidth;
  if (result.start)
    root["start_seconds"] = {{"compile", result.start->compile},
                             {"cold", result.start->cold},
                             {"cached", result.start->cached},
                             {"beside", result.start->beside},
                             {"kernels", result.start->kernels}};
  root["measurements"] = ordered_json::array();
  for (DenseForm form : kDenseForms)
    root[keyOf(form)] = ordered_json::array();
  for (const BatchResult &batch : result.batches) {
    for (const Measured &m : batch.ours)
      root["measurements"].push_back(asJson(m));
    for (DenseForm form : kDenseForms)
      if (const auto &dense = batch.dense[form])
        root[keyOf(form)].push_back(asJson(*dense));
  }
  root["served"] = ordered_json::array();
  for (const Served &served : result.served)
    root["served"].push_back(asJson(served));
  root["baselines"] = ordered_json::array();
  for (const Baseline *baseline : baselines.of(shape, 0))
    root["baselines"].push_back(asJson(*baseline));
  root["baselines_missing"] = baselines.missing;
  root["baselines_machine"] = baselines.machine;
  // Paths may hold any bytes: what is not UTF-8 is shown as U+FFFD.
  return root.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}
