//===- CudaRowConverter.h - Conversion of rows on a GPU ---------*- C++ -*-===//
#ifndef SINKSTATE_CUDA_CUDAROWCONVERTER_H
#define SINKSTATE_CUDA_CUDAROWCONVERTER_H

#include "cuda/KernelCompiler.h"
#include "cuda/Memory.h"
#include "cuda/Module.h"
#include "engine/DecodeArguments.h"
#include "engine/RowConverter.h"

#include <optional>

namespace sinkstate::runtime::cuda {

/// The kernels of device/conversion.cuh. A call is one launch.
class CudaRowConverter final : public RowConverter {
public:
  /// Compiles and allocates; `faults` is a word of device memory.
  CudaRowConverter(std::shared_ptr<const Context> context,
                   int64_t stagingBytes, int32_t *faults);
  ~CudaRowConverter() override;

  int64_t rowUnit() const override { return kVectorFloats; }
  bool keepsSlots() const override { return true; }
  std::byte *staging() const override { return memory.at<std::byte>(0); }
  void take(ss::RowsToTake rows, void *stream) const override;
  void give(const ss::RowsToGive &rows, void *stream) const override;

private:
  template <typename Rows>
  void launch(CUfunction function, const Rows &rows, int64_t batch,
              void *stream) const;

  std::shared_ptr<const Context> context;
  DeviceMemory memory;
  std::optional<Module> module;
  CUfunction takeFunction = nullptr, giveFunction = nullptr;
  int32_t *faults;
};

} // namespace sinkstate::runtime::cuda

#endif
