//===- MemoryParts.h - What an engine's memory is for -----------*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_MEMORYPARTS_H
#define SINKSTATE_ENGINE_MEMORYPARTS_H

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sinkstate::runtime {

namespace purpose {
// What states are made of: no less would do.
inline constexpr std::string_view kComponents = "components and matrices";
inline constexpr std::string_view kKeys = "buffered keys";
inline constexpr std::string_view kValues = "buffered values";
inline constexpr std::string_view kDecays = "buffered log-decays";
// What they take beside that.
inline constexpr std::string_view kPairRows = "rows for what the buffers hold";
inline constexpr std::string_view kCapacities = "rows beyond, by steps of capacities";
inline constexpr std::string_view kFixedRows = "rows of the fixed capacity";
inline constexpr std::string_view kLeftBlocks = "blocks left, free with the next step";
inline constexpr std::string_view kFreeBlocks = "free blocks among those in use";
inline constexpr std::string_view kToCome = "memory for steps to come";
inline constexpr std::string_view kUnits = "rest of what is mapped at a time";
inline constexpr std::string_view kPoolTables = "tables of the pools";
inline constexpr std::string_view kTables = "tables of the states";
inline constexpr std::string_view kInspection = "inspection";
inline constexpr std::string_view kConsolidation = "consolidation";
} // namespace purpose

struct MemoryPart {
  std::string_view purpose;
  int64_t bytes;
};

/// Bytes by purpose, in the order in which purposes were first named.
class MemoryParts {
public:
  void add(std::string_view purpose, int64_t bytes) {
    auto part = std::find_if(parts.begin(), parts.end(), [&](const MemoryPart &p) {
      return p.purpose == purpose;
    });
    if (part != parts.end())
      part->bytes += bytes;
    else
      parts.push_back({purpose, bytes});
  }
  int64_t sum() const {
    int64_t bytes = 0;
    for (const MemoryPart &part : parts)
      bytes += part.bytes;
    return bytes;
  }
  const std::vector<MemoryPart> &list() const { return parts; }

private:
  std::vector<MemoryPart> parts;
};

/// Whether a purpose is a state's own: what the floor has too.
inline bool isOfStates(std::string_view of) {
  return of == purpose::kComponents || of == purpose::kKeys ||
         of == purpose::kValues || of == purpose::kDecays;
}

} // namespace sinkstate::runtime

#endif
