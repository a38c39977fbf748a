//===- SnapshotFields.h - Integers and floats as bytes ----------*- C++ -*-===//
//
// Little-endian whatever the host is.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_HANDOVER_SNAPSHOTFIELDS_H
#define SINKSTATE_HANDOVER_SNAPSHOTFIELDS_H

#include "package/Storage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace sinkstate::runtime {

template <typename T> void putInteger(std::byte *at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    at[i] = std::byte(uint64_t(value) >> (8 * i));
}

template <typename T> T getInteger(const std::byte *at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= uint64_t(at[i]) << (8 * i);
  return T(value);
}

inline void putFloats(std::byte *at, const std::vector<float> &values) {
  if constexpr (std::endian::native == std::endian::little) {
    if (!values.empty())
      std::memcpy(at, values.data(), values.size() * sizeof(float));
  } else {
    for (size_t i = 0; i < values.size(); ++i)
      putInteger(at + 4 * i, std::bit_cast<uint32_t>(values[i]));
  }
}

inline std::vector<float> getFloats(const std::byte *at, size_t count) {
  std::vector<float> values(count);
  if constexpr (std::endian::native == std::endian::little) {
    if (count > 0)
      std::memcpy(values.data(), at, count * sizeof(float));
  } else {
    for (size_t i = 0; i < count; ++i)
      values[i] = std::bit_cast<float>(getInteger<uint32_t>(at + 4 * i));
  }
  return values;
}

/// Calls `body(elements, first, count)` for parts of an array, with aligned
/// memory for so many elements of a storage.
template <typename Body>
void overElements(Storage storage, size_t count, const Body &body) {
  constexpr size_t kPart = 2048;
  alignas(4) std::array<std::byte, kPart * sizeof(float)> part;
  for (size_t first = 0; first < count; first += kPart)
    body(std::span(part).first(std::min(kPart, count - first) *
                               size_t(elementBytes(storage))),
         first, std::min(kPart, count - first));
}

/// Elements of two bytes in the order of the format, or back.
inline void orderBytes(Storage storage, std::span<std::byte> elements) {
  if (std::endian::native == std::endian::little || elementBytes(storage) != 2)
    return;
  for (size_t i = 0; i + 1 < elements.size(); i += 2)
    std::swap(elements[i], elements[i + 1]);
}

/// Floats that are numbers of a storage, as its elements: exact.
inline void putElements(std::byte *at, const std::vector<float> &values,
                        Storage storage) {
  if (storage == Storage::F32)
    return putFloats(at, values);
  overElements(storage, values.size(),
               [&](std::span<std::byte> part, size_t first, size_t count) {
                 storeElements(storage, part.data(), values.data() + first,
                               int64_t(count));
                 orderBytes(storage, part);
                 std::copy(part.begin(), part.end(),
                           at + first * size_t(elementBytes(storage)));
               });
}

inline std::vector<float> getElements(const std::byte *at, size_t count,
                                      Storage storage) {
  if (storage == Storage::F32)
    return getFloats(at, count);
  std::vector<float> values(count);
  overElements(storage, count,
               [&](std::span<std::byte> part, size_t first, size_t some) {
                 const size_t width = size_t(elementBytes(storage));
                 std::copy_n(at + first * width, some * width, part.begin());
                 orderBytes(storage, part);
                 loadElements(storage, values.data() + first, part.data(),
                              int64_t(some));
               });
  return values;
}

} // namespace sinkstate::runtime

#endif
