//===- Baselines.cpp - Times of dense kernels that people use -------------===//

#include "Baselines.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace ss_bench;
using nlohmann::json;
using sinkstate::Error;
using sinkstate::Result;

namespace {

/// One line; throws what nlohmann::json throws where a key is wrong.
void takeLine(Baselines &baselines, const json &line) {
  if (line.contains("copy_gb_s")) {
    baselines.copyBandwidth = line.at("copy_gb_s").get<double>() * 1e9;
    baselines.machine = line.at("gpu").get<std::string>();
    for (const char *key : {"driver", "torch", "triton"})
      if (line.contains(key))
        baselines.machine += std::string(", ") + key + " " +
                             line.at(key).get<std::string>();
    return;
  }
  const auto kernel = line.at("kernel").get<std::string>();
  if (line.contains("missing")) {
    baselines.missing.push_back(kernel + ": " +
                                line.at("missing").get<std::string>());
    return;
  }
  Baseline baseline;
  baseline.kernel = kernel;
  baseline.version = line.at("version").get<std::string>();
  baseline.state = line.at("state").get<std::string>();
  baseline.shape = {line.at("type").get<std::string>(),
                    line.at("heads").get<int32_t>(),
                    line.at("key_heads").get<int32_t>(),
                    line.at("dv").get<int32_t>(), line.at("dk").get<int32_t>()};
  baseline.batch = line.at("batch").get<int32_t>();
  baseline.microseconds = line.at("us").get<double>();
  baselines.times.push_back(std::move(baseline));
}

} // namespace

Result<Baselines> Baselines::parse(const std::string &text,
                                   const std::string &name) {
  Baselines baselines;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty())
      continue;
    try {
      takeLine(baselines, json::parse(line));
    } catch (const json::exception &) {
      return Error{name + ":" + std::to_string(number) + ": found '" +
                   line.substr(0, 40) + (line.size() > 40 ? "..." : "") +
                   "', expected a line of scripts/dense-baselines.py: one "
                   "object with a kernel's name, shape and time"};
    }
  }
  if (baselines.times.empty() && baselines.missing.empty())
    return Error{name + ": has no times, expected the output of "
                        "scripts/dense-baselines.py"};
  return baselines;
}

Result<Baselines> Baselines::read(const std::string &file) {
  std::ifstream stream(file);
  if (!stream)
    return Error{file + ": cannot be read, expected the output of "
                        "scripts/dense-baselines.py"};
  return parse(std::string{std::istreambuf_iterator<char>(stream), {}}, file);
}

std::vector<const Baseline *> Baselines::of(const ShapeName &shape,
                                            int32_t batch) const {
  std::vector<const Baseline *> found;
  for (const Baseline &baseline : times)
    if (baseline.shape == shape && (batch == 0 || baseline.batch == batch))
      found.push_back(&baseline);
  return found;
}
