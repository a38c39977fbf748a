//===- HostConversion.cpp - The conversion kernels on the host ------------===//

#include "HostConversion.h"

#include "FakeCuda.h"

#include "cuda/device/conversion.cuh"

namespace sinkstate::test {
namespace {

/// Threads of a block, as CudaRowConverter launches them.
constexpr int64_t kThreads = 256;

void hostTakeRows(void *, void *const *parameters, unsigned blocks) {
  const auto &take = *static_cast<const ss::RowsToTake *>(parameters[0]);
  const int64_t threads = int64_t(blocks) * kThreads;
  for (int64_t thread = 0; thread < threads; ++thread)
    ss::take_rows(take, thread, threads);
}

void hostGiveRows(void *, void *const *parameters, unsigned blocks) {
  const auto &give = *static_cast<const ss::RowsToGive *>(parameters[0]);
  const int64_t threads = int64_t(blocks) * kThreads;
  for (int64_t thread = 0; thread < threads; ++thread)
    ss::give_rows(give, thread, threads);
}

void add(const char *name, size_t size, fake_kernel run) {
  fake_add_kernel(name, &size, 1, run, nullptr);
}

} // namespace

void addConversionKernels() {
  add("ss_take_rows", sizeof(ss::RowsToTake), hostTakeRows);
  add("ss_give_rows", sizeof(ss::RowsToGive), hostGiveRows);
}

} // namespace sinkstate::test
