//===- Nvtx.h - Ranges for NVIDIA's profilers -------------------*- C++ -*-===//
//
// A range per call of a step (begin, each layer's decode, end), per compaction on
// the CPU and per stage of consolidation, on the thread that does it. A profiler
// that listens names its library in NVTX_INJECTION64_PATH, as Nsight Systems does
// for the processes it starts; otherwise a range is a test of one pointer.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_OBSERVE_NVTX_H
#define SINKSTATE_OBSERVE_NVTX_H

#include <string>

namespace sinkstate::runtime {

/// What a range calls; both null where nobody listens.
struct NvtxFunctions {
  int (*push)(const char *name) = nullptr;
  int (*pop)() = nullptr;

  /// `library`: one that exports nvtxRangePushA and nvtxRangePop, which wins;
  /// `injection`: a profiler's, which exports InitializeInjectionNvtx2. "": none.
  /// What cannot be opened is as if it were not given: profiling is no reason to
  /// fail. A profiler is given tables of this process that stay.
  static NvtxFunctions open(const std::string &library,
                            const std::string &injection);
};

/// From its beginning to its end, on one thread; ranges nest.
class NvtxRange {
public:
  explicit NvtxRange(const char *name);
  /// "<name> <detail>", joined only where somebody listens.
  NvtxRange(const char *name, const std::string &detail);
  ~NvtxRange();
  NvtxRange(const NvtxRange &) = delete;
  NvtxRange &operator=(const NvtxRange &) = delete;
};

} // namespace sinkstate::runtime

#endif
