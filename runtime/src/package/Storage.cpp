//===- Storage.cpp - Element types of stored rows -------------------------===//

#include "package/Storage.h"

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

} // namespace sinkstate::runtime
