//===- CpuInit.h - An init kernel on the processor --------------*- C++ -*-===//
#ifndef SS_BENCH_CPUINIT_H
#define SS_BENCH_CPUINIT_H

#include "InitCheck.h"

#include "device/CpuDevice.h"

#include <cstdint>
#include <vector>

namespace ss_bench {

/// The init kernel of a layer over all matrices of a Spectra, in host memory.
class CpuInit {
public:
  /// `layer` is one of the package's, with an init kernel. All are kept.
  CpuInit(sinkstate::runtime::CpuDevice &device,
          const sinkstate::runtime::Package &package,
          const sinkstate::runtime::LayerManifest &layer,
          const Spectra &spectra, float eps);

  /// Milliseconds of one launch.
  double run();
  FoundStates found() const;

private:
  sinkstate::runtime::CpuDevice &device;
  const sinkstate::runtime::Package &package;
  const sinkstate::runtime::LayerManifest &layer;
  int32_t count, most;
  std::vector<float> matrices, rows, weights;
  std::vector<int64_t> rowBase, matrixBase;
  std::vector<int32_t> rank, status, work;
  sinkstate::runtime::ArgumentValues values;
};

} // namespace ss_bench

#endif
