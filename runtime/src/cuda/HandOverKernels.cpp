//===- HandOverKernels.cpp - Moving and counting on a GPU -----------------===//

#include "cuda/HandOverKernels.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

// The texts of the headers in device/.
constexpr char kSource[] = {
#include "HandoverSource.inc"
};
constexpr char kElements[] = {
#include "ElementsSource.inc"
};
constexpr char kSchedule[] = {
#include "ScheduleSource.inc"
};

template <size_t N> std::string textOf(const char (&bytes)[N]) {
  return std::string(bytes, N);
}

/// Rows of a batch, elements of a piece, or eight rows of a square.
constexpr unsigned kThreads = 256;

} // namespace

HandOverKernels::HandOverKernels(std::shared_ptr<const Context> owner,
                                 const KernelCompiler &compiler)
    : context(std::move(owner)),
      module(context, "ss_handover",
             compiler.compile(
                 {{"ss_handover", textOf(kSource)}},
                 {{"cuda/device/elements.cuh", textOf(kElements)},
                  {"cuda/device/schedule.cuh", textOf(kSchedule)}})[0]),
      takeTokensFunction(module.function("ss_take_tokens")),
      nextTokenFunction(module.function("ss_next_token")),
      settleFunction(module.function("ss_settle")),
      rollbackFunction(module.function("ss_rollback")),
      copyPiecesFunction(module.function("ss_copy_pieces")),
      readDenseFunction(module.function("ss_read_dense")),
      writeDenseFunction(module.function("ss_write_dense")) {}

template <typename... Values>
void HandOverKernels::launch(CUfunction function, int64_t blocks,
                             CUstream stream, Values... values) const {
  void *parameters[] = {&values...};
  SS_CUDA(context->driver(),
          cuLaunchKernel(function, unsigned(blocks), 1, 1, kThreads, 1, 1, 0,
                         stream, parameters, nullptr));
}

void HandOverKernels::takeTokens(ss::Schedule tables,
                                 std::span<const int32_t> slots,
                                 std::span<const int32_t> tokens,
                                 CUstream stream) const {
  const auto batch = int32_t(slots.size());
  for (int32_t first = 0; first < batch; first += ss::kRowsAtOnce) {
    ss::RowNumbers numbers = {};
    numbers.first = first;
    numbers.rows = std::min(ss::kRowsAtOnce, batch - first);
    for (int32_t i = 0; i < numbers.rows; ++i)
      numbers.tokens[i] =
          tokens[tokens.size() == 1 ? 0 : size_t(first + i)];
    launch(takeTokensFunction, 1, stream, tables, slots.data(), batch,
           numbers);
  }
}

void HandOverKernels::nextToken(ss::Schedule tables, int32_t number,
                                std::span<const int32_t> slots, int32_t token,
                                int32_t *rowSlots, CUstream stream) const {
  launch(nextTokenFunction, 1, stream, tables, number, slots.data(),
         int32_t(slots.size()), token, rowSlots);
}

void HandOverKernels::settle(ss::Schedule tables, int32_t number,
                             CUstream stream) const {
  launch(settleFunction, 1, stream, tables, number);
}

void HandOverKernels::rollback(ss::Schedule tables,
                               std::span<const int32_t> slots,
                               std::span<const int32_t> tokens,
                               int32_t *refused, CUstream stream) const {
  for (int32_t apply : {0, 1})
    for (size_t first = 0; first < slots.size();
         first += size_t(ss::kRowsAtOnce)) {
      ss::RowNumbers numbers = {};
      numbers.rows = int32_t(
          std::min(size_t(ss::kRowsAtOnce), slots.size() - first));
      std::copy_n(slots.data() + first, numbers.rows, numbers.slot);
      std::copy_n(tokens.data() + first, numbers.rows, numbers.tokens);
      launch(rollbackFunction, 1, stream, tables, numbers, apply, refused);
    }
}

void HandOverKernels::copyPieces(const ss::Piece *pieces, int64_t count,
                                 CUstream stream) const {
  if (count > 0)
    launch(copyPiecesFunction, count, stream, pieces);
}

void HandOverKernels::readDense(ss::DenseMatrices dense, float *columns,
                                CUstream stream) const {
  launch(readDenseFunction, ss::square_count(dense), stream, dense, columns);
}

void HandOverKernels::writeDense(ss::DenseMatrices dense, const float *columns,
                                 CUstream stream) const {
  launch(writeDenseFunction, ss::square_count(dense), stream, dense, columns);
}

} // namespace sinkstate::runtime::cuda
