//===- ResourceTable.h - What kernels take of a GPU -------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_KERNELS_RESOURCETABLE_H
#define SINKSTATE_TOOLS_SS_KERNELS_RESOURCETABLE_H

#include "result/Result.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ss_kernels {

/// What ptxas says of one kernel on one architecture.
struct Resources {
  int64_t registers = 0;
  int64_t spillBytes = 0;
  int64_t stackBytes = 0;
  int64_t sharedBytes = 0;
  bool operator==(const Resources &) const = default;
};

/// By kernel and architecture ("sm_90a"), of one version of NVRTC.
struct ResourceTable {
  std::string nvrtc; ///< "13.0"
  std::map<std::string, std::map<std::string, Resources>> kernels;

  /// The text of resources.json: a line for each kernel.
  std::string print() const;
  static sinkstate::Result<ResourceTable> parse(const std::string &text);
};

/// One line for every difference that matters. The same NVRTC has to give the
/// recorded numbers. Another one allocates registers its own way: it may take
/// an eighth and 8 registers more, and spill and use stack where that was
/// recorded too, at most twice as much; shared memory is the source's, and
/// equal.
std::vector<std::string> compare(const ResourceTable &recorded,
                                 const ResourceTable &found);

} // namespace ss_kernels

#endif // SINKSTATE_TOOLS_SS_KERNELS_RESOURCETABLE_H
