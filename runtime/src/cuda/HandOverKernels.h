//===- HandOverKernels.h - Moving and counting on a GPU ---------*- C++ -*-===//
#ifndef SINKSTATE_CUDA_HANDOVERKERNELS_H
#define SINKSTATE_CUDA_HANDOVERKERNELS_H

#include "cuda/KernelCompiler.h"
#include "cuda/Module.h"
#include "cuda/device/handover.cuh"

#include <span>

namespace sinkstate::runtime::cuda {

/// The kernels of device/handover.cuh. Calls queue work and wait for nothing.
class HandOverKernels {
public:
  HandOverKernels(std::shared_ptr<const Context> context,
                  const KernelCompiler &compiler);

  /// `tokens`: one for every row, or one for all.
  void takeTokens(ss::Schedule tables, std::span<const int32_t> slots,
                  std::span<const int32_t> tokens, CUstream stream) const;
  /// `number`: of the layer among the factored ones, -1 for dense form.
  void nextToken(ss::Schedule tables, int32_t number,
                 std::span<const int32_t> slots, int32_t token,
                 int32_t *rowSlots, CUstream stream) const;
  void settle(ss::Schedule tables, int32_t number, CUstream stream) const;
  /// Rows of host memory; `refused` is device memory that is 0, and not 0
  /// afterwards where nothing was changed.
  void rollback(ss::Schedule tables, std::span<const int32_t> slots,
                std::span<const int32_t> tokens, int32_t *refused,
                CUstream stream) const;
  /// `pieces` is device memory.
  void copyPieces(const ss::Piece *pieces, int64_t count,
                  CUstream stream) const;
  void readDense(ss::DenseMatrices dense, float *columns,
                 CUstream stream) const;
  void writeDense(ss::DenseMatrices dense, const float *columns,
                  CUstream stream) const;

private:
  template <typename... Values>
  void launch(CUfunction function, int64_t blocks, CUstream stream,
              Values... values) const;

  std::shared_ptr<const Context> context;
  Module module;
  CUfunction takeTokensFunction, nextTokenFunction, settleFunction,
      rollbackFunction, copyPiecesFunction, readDenseFunction,
      writeDenseFunction;
};

} // namespace sinkstate::runtime::cuda

#endif
