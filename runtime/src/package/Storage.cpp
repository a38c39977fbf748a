//===- Storage.cpp - Element types of stored rows -------------------------===//

#include "package/Storage.h"

#include "handover/DenseLayout.h"

#include <algorithm>
#include <cstring>

namespace sinkstate::runtime {
namespace {
constexpr Storage kStorages[] = {Storage::F32, Storage::F16, Storage::BF16};
} // namespace

const char *storageName(Storage storage) {
  switch (storage) {
  case Storage::F32:
    return "f32";
  case Storage::F16:
    return "f16";
  case Storage::BF16:
    return "bf16";
  }
  return "unknown";
}

std::optional<Storage> storageByName(std::string_view name) {
  for (Storage storage : kStorages)
    if (name == storageName(storage))
      return storage;
  return std::nullopt;
}

void loadElements(Storage storage, float *to, const void *from,
                  int64_t count) {
  const auto *halves = static_cast<const uint16_t *>(from);
  switch (storage) {
  case Storage::F32:
    if (count > 0)
      std::memcpy(to, from, size_t(count) * sizeof(float));
    break;
  case Storage::F16:
    std::transform(halves, halves + count, to, fromF16);
    break;
  case Storage::BF16:
    std::transform(halves, halves + count, to, fromBf16);
    break;
  }
}

void storeElements(Storage storage, void *to, const float *from,
                   int64_t count) {
  auto *halves = static_cast<uint16_t *>(to);
  switch (storage) {
  case Storage::F32:
    if (count > 0)
      std::memcpy(to, from, size_t(count) * sizeof(float));
    break;
  case Storage::F16:
    std::transform(from, from + count, halves, toF16);
    break;
  case Storage::BF16:
    std::transform(from, from + count, halves, toBf16);
    break;
  }
}

} // namespace sinkstate::runtime
