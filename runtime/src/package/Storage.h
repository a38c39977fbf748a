//===- Storage.h - Element types of stored rows -----------------*- C++ -*-===//
//
// Component rows and dense states lie in memory in one of these types; buffers,
// weights and log-decays are f32, and so is everything that is computed.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PACKAGE_STORAGE_H
#define SINKSTATE_PACKAGE_STORAGE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace sinkstate::runtime {

enum class Storage : uint8_t { F32, F16, BF16 };

/// "f32", "f16" or "bf16".
const char *storageName(Storage storage);
std::optional<Storage> storageByName(std::string_view name);

constexpr int64_t elementBytes(Storage storage) {
  return storage == Storage::F32 ? 4 : 2;
}

/// Elements from memory as f32, which is exact.
void loadElements(Storage storage, float *to, const void *from, int64_t count);
/// Rounds to nearest, ties to even; beyond the range of the type to infinity.
void storeElements(Storage storage, void *to, const float *from, int64_t count);

} // namespace sinkstate::runtime

#endif
