//===- SnapshotFields.h - Integers and floats as bytes ----------*- C++ -*-===//
//
// Little-endian whatever the host is.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_HANDOVER_SNAPSHOTFIELDS_H
#define SINKSTATE_HANDOVER_SNAPSHOTFIELDS_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

} // namespace sinkstate::runtime

#endif
