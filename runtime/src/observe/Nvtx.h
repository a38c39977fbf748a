//===- Nvtx.h - Ranges for NVIDIA's profilers -------------------*- C++ -*-===//
//
// A range per step, layer and stage, where SS_NVTX names NVIDIA's library;
// otherwise a test of one pointer.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_OBSERVE_NVTX_H
#define SINKSTATE_OBSERVE_NVTX_H

namespace sinkstate::runtime {

class NvtxRange {
public:
  explicit NvtxRange(const char *name);
  ~NvtxRange();
  NvtxRange(const NvtxRange &) = delete;
  NvtxRange &operator=(const NvtxRange &) = delete;
};

} // namespace sinkstate::runtime

#endif
