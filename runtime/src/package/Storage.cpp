//===- Storage.cpp - Element types of stored rows -------------------------===//

#include "package/Storage.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::runtime {
namespace {
constexpr Storage kStorages[] = {Storage::F32, Storage::F16,
                                 Storage::BF16, Storage::FP8};
} // namespace

const char *storageName(Storage storage) {
  switch (storage) {
  case Storage::F32:
    return "f32";
  case Storage::F16:
    return "f16";
  case Storage::BF16:
    return "bf16";
  case Storage::FP8:
    return "fp8";
  }
  return "unknown";
}

std::optional<Storage> storageByName(std::string_view name) {
  for (Storage storage : kStorages)
    if (name == storageName(storage))
      return storage;
  return std::nullopt;
}

bool keepsDigits(Storage storage, float largestMagnitude) {
  constexpr float kLeast = 0x1p-7f;
  return storage != Storage::F16 ||
         (largestMagnitude >= kLeast && largestMagnitude < kF16Beyond);
}

bool keepsDigits(Storage storage, const float *elements, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::fabs(elements[i]));
  return keepsDigits(storage, largest);
}

} // namespace sinkstate::runtime
