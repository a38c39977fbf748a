//===- HostRowConverter.h - Conversion of rows on the CPU -------*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_HOSTROWCONVERTER_H
#define SINKSTATE_ENGINE_HOSTROWCONVERTER_H

#include "engine/RowConverter.h"

#include <memory>

namespace sinkstate::runtime {

class HostRowConverter final : public RowConverter {
public:
  explicit HostRowConverter(int64_t stagingBytes);

  int64_t rowUnit() const override { return 1; }
  bool keepsSlots() const override { return false; }
  std::byte *staging() const override { return memory.get(); }
  void take(ss::RowsToTake rows, void *stream) const override;
  void give(const ss::RowsToGive &rows, void *stream) const override;

private:
  struct Free {
    void operator()(std::byte *memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> memory;
};

} // namespace sinkstate::runtime

#endif
