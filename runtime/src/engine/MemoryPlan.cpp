//===- MemoryPlan.cpp - Bytes of an engine before it exists ---------------===//

#include "engine/Engine.h"

#include <algorithm>

namespace sinkstate::runtime {

void planMemory(const Package &package, const ss_engine_options &options,
                ss_memory_plan &plan) {
  CpuDevice device(options.threads);
  plan.worst_case = plan.expected = plan.dense = plan.hand_over = 0;
  for (const LayerManifest &layer : package.manifest().layers) {
    LayerLayout layout(layer, options.slots, options.dense_fallback != 0);
    plan.worst_case += layout.worstCaseBytes(device);
    plan.expected += layout.expectedBytes(device);
    plan.dense += layout.denseBytes();
  }
  if (options.state_bytes_limit > 0)
    plan.worst_case = std::min(plan.worst_case, options.state_bytes_limit);
  plan.expected = std::min(plan.expected, plan.worst_case);
}

} // namespace sinkstate::runtime
