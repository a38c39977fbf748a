//===- FrozenPlan.h - Memory of consolidation on a GPU ----------*- C++ -*-===//
//
// What an engine that consolidates takes beside its states: epochs, the staging
// memory of the download and of results on their way back, and the same in
// page-locked memory of the host. All of it is allocated with the engine.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_CONSOLIDATION_FROZENPLAN_H
#define SINKSTATE_CUDA_CONSOLIDATION_FROZENPLAN_H

#include "cuda/CudaLayout.h"
#include "cuda/device/consolidation.cuh"

#include <vector>

namespace sinkstate::runtime::cuda {

/// Offsets in bytes of what one layer has.
struct FrozenLayerPlan {
  int32_t layer = 0;        ///< in the manifest
  int32_t most = 0;         ///< components of a state at most
  int32_t slotsPerJob = 1;  ///< what fits the staging memory
  int64_t epoch = 0, since = 0, changed = 0; ///< on the device
  int64_t notes = 0, changes = 0;            ///< on the host
};

/// A mailbox on the device and its twin on the host.
struct MailboxPlan {
  int64_t ready = 0, count = 0, results = 0, data = 0, answered = 0;
  int64_t hostReady = 0, hostCount = 0, hostResults = 0, hostData = 0;
  int64_t hostAnswers = 0, hostAnsweredAt = 0;
};

struct FrozenPlan {
  FrozenPlan(const Manifest &manifest, const CudaLayout &layout, int32_t slots);

  std::vector<FrozenLayerPlan> layers; ///< those with a frozen part
  int32_t slots = 0;
  int64_t room = 0;       ///< bytes of one staging memory
  int64_t mostStates = 0; ///< of one job
  int64_t tables = 0;     ///< ss::FrozenLayer of every layer
  // The download.
  int64_t gatherSlots = 0, gatherStates = 0, gatherUsed = 0, gatherData = 0;
  int64_t hostSlots = 0, hostStates = 0, hostUsed = 0, hostData = 0;
  MailboxPlan boxes[ss::kMailboxes];
  int64_t hostZero = 0;      ///< a word that stays 0
  int64_t hostPositions = 0; ///< of every slot
  int64_t deviceBytes = 0, hostBytes = 0;

private:
  int64_t take(int64_t &bytes, int64_t count, int64_t elementBytes) const;
  void placeBox(MailboxPlan &box);
  void placeStaging();
};

} // namespace sinkstate::runtime::cuda

#endif
