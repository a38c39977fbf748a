//===- RowConverter.h - A device's conversion of rows -----------*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_ROWCONVERTER_H
#define SINKSTATE_ENGINE_ROWCONVERTER_H

#include "cuda/device/conversion.cuh"

#include <cstddef>

namespace sinkstate::runtime {

/// Brings a caller's arrays to what kernels of an engine take, and back, in
/// staging memory of the engine's device. On CUDA the calls only queue work on
/// `stream`; the staging memory is used again by every call, so that calls have to
/// be in one order, as all work on one engine.
class RowConverter {
public:
  virtual ~RowConverter() = default;

  /// Floats at whose multiples the device's kernels want rows to begin, where the
  /// elements of a head are so many as well: 1 where any address is read.
  virtual int64_t rowUnit() const = 0;
  /// The beginning of the staging memory, a multiple of kStagingAlignment.
  virtual std::byte *staging() const = 0;
  /// Whether the caller's slots stay as they are from a step's beginning to its
  /// end, so that they are converted once.
  virtual bool keepsSlots() const = 0;
  /// Converts slots (where `slot_rows` is null they are only read) and inputs;
  /// `faults` is the engine's business. What a slot
  /// is that is neither one nor padding: on the CPU SS_INVALID_ARGUMENT, on CUDA
  /// padding, and a fault that ss_engine_synchronize reports.
  virtual void take(ss::RowsToTake rows, void *stream) const = 0;
  virtual void give(const ss::RowsToGive &rows, void *stream) const = 0;
};

constexpr int64_t kStagingAlignment = 256;

} // namespace sinkstate::runtime

#endif
