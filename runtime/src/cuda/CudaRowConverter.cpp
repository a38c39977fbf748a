//===- CudaRowConverter.cpp - Conversion of rows on a GPU -----------------===//

#include "cuda/CudaRowConverter.h"

#include "capi/Failure.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

// The texts of the headers in device/.
constexpr char kSource[] = {
#include "ConversionSource.inc"
};
constexpr char kElements[] = {
#include "ElementsSource.inc"
};

constexpr int64_t kThreads = 256;
/// Blocks a multiprocessor; the rest of a large call follows in the same threads.
constexpr int64_t kBlocksEach = 32;

int64_t blocksFor(int64_t work, int64_t each) {
  return (work + each - 1) / each;
}

} // namespace

CudaRowConverter::CudaRowConverter(std::shared_ptr<const Context> owner,
                                   int64_t stagingBytes, int32_t *faultWord)
    : context(std::move(owner)), faults(faultWord) {
  CurrentContext current(*context);
  const KernelCompiler compiler(*context);
  const std::string source(kSource, sizeof kSource);
  module.emplace(context, "ss_conversion",
                 compiler.compile({{"ss_conversion", source}},
                                  {{"cuda/device/elements.cuh",
                                    std::string(kElements,
                                                sizeof kElements)}})[0]);
  takeFunction = module->function("ss_take_rows");
  giveFunction = module->function("ss_give_rows");
  memory = DeviceMemory(context, size_t(stagingBytes));
}

CudaRowConverter::~CudaRowConverter() {
  try {
    const Release release(*context);
    // Kernels of the last step may still use what is freed now.
    SS_RELEASE(cuCtxSynchronize());
    module.reset();
    memory = DeviceMemory();
  } catch (const Failure &) {
    // The context is gone, and everything in it.
  }
}

template <typename Rows>
void CudaRowConverter::launch(CUfunction function, const Rows &rows,
                              int64_t batch, void *stream) const {
  CurrentContext current(*context);
  const int64_t blocks =
      std::min(std::max(blocksFor(batch, kThreads),
                        blocksFor(ss::part_count(rows), kThreads / ss::kLanes)),
               kBlocksEach * context->multiprocessors());
  Rows values = rows;
  void *parameters[] = {&values};
  SS_CUDA(context->driver(),
          cuLaunchKernel(function, unsigned(blocks), 1, 1, unsigned(kThreads),
                         1, 1, 0, static_cast<CUstream>(stream), parameters,
                         nullptr));
}

void CudaRowConverter::take(ss::RowsToTake rows, void *stream) const {
  rows.faults = faults;
  launch(takeFunction, rows, rows.slots.batch, stream);
}

void CudaRowConverter::give(const ss::RowsToGive &rows, void *stream) const {
  launch(giveFunction, rows, 1, stream);
}

} // namespace sinkstate::runtime::cuda
