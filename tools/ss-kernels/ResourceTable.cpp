//===- ResourceTable.cpp - What kernels take of a GPU ---------------------===//

#include "ResourceTable.h"

#include <nlohmann/json.hpp>

using namespace ss_kernels;
using sinkstate::Error;
using sinkstate::Result;

namespace {

const char *const kFormat = "sinkstate-kernel-resources";

nlohmann::ordered_json toJson(const Resources &use) {
  return {use.registers, use.spillBytes, use.stackBytes, use.sharedBytes};
}

std::string describe(const Resources &use) {
  return std::to_string(use.registers) + " registers, " +
         std::to_string(use.spillBytes) + " bytes spilled, " +
         std::to_string(use.stackBytes) + " bytes stack, " +
         std::to_string(use.sharedBytes) + " bytes shared";
}

bool isWithin(const Resources &recorded, const Resources &found) {
  return found.registers <= recorded.registers + recorded.registers / 8 + 8 &&
         found.spillBytes <= 2 * recorded.spillBytes &&
         found.stackBytes <= 2 * recorded.stackBytes &&
         found.sharedBytes == recorded.sharedBytes;
}

} // namespace

std::string ResourceTable::print() const {
  std::string text = "{\"format\": \"" + std::string(kFormat) +
                     "\", \"version\": 1, \"nvrtc\": \"" + nvrtc +
                     "\",\n \"columns\": [\"registers\", \"bytes spilled\", "
                     "\"bytes stack\", \"bytes shared\"],\n \"kernels\": {\n";
  size_t left = kernels.size();
  for (const auto &[kernel, uses] : kernels) {
    nlohmann::ordered_json line = nlohmann::ordered_json::object();
    for (const auto &[architecture, use] : uses)
      line[architecture] = toJson(use);
    text += "  \"" + kernel + "\": " + line.dump() + (--left ? ",\n" : "\n");
  }
  return text + " }}\n";
}

Result<ResourceTable> ResourceTable::parse(const std::string &text) {
  const nlohmann::json root =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || root.value("format", "") != kFormat ||
      root.value("version", 0) != 1)
    return Error{"found no object with format '" + std::string(kFormat) +
                 "' and version 1: run scripts/regenerate-kernels.sh"};
  ResourceTable table;
  try {
    table.nvrtc = root.at("nvrtc");
    for (const auto &[kernel, uses] : root.at("kernels").items())
      for (const auto &[architecture, use] : uses.items())
        table.kernels[kernel][architecture] = {use.at(0), use.at(1), use.at(2),
                                               use.at(3)};
  } catch (const nlohmann::json::exception &error) {
    return Error{std::string(error.what()) +
                 ": run scripts/regenerate-kernels.sh"};
  }
  return table;
}

std::vector<std::string> ss_kernels::compare(const ResourceTable &recorded,
                                             const ResourceTable &found) {
  std::vector<std::string> lines;
  const bool exact = recorded.nvrtc == found.nvrtc;
  for (const auto &[kernel, uses] : found.kernels)
    for (const auto &[architecture, use] : uses) {
      const std::string name = kernel + " " + architecture + ": ";
      const auto known = recorded.kernels.find(kernel);
      if (known == recorded.kernels.end() ||
          !known->second.count(architecture)) {
        lines.push_back(name + "is not recorded");
        continue;
      }
      const Resources &old = known->second.at(architecture);
      if (exact ? use != old : !isWithin(old, use))
        lines.push_back(name + "found " + describe(use) + ", recorded " +
                        describe(old) + " by NVRTC " + recorded.nvrtc);
    }
  for (const auto &[kernel, uses] : recorded.kernels)
    if (!found.kernels.count(kernel))
      lines.push_back(kernel + ": is recorded, but there is no such kernel");
  return lines;
}
