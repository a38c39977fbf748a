//===- PoolMemory.h - The memory behind one row pool ------------*- C++ -*-===//
//
// The device hands blocks out of chunks that are mapped; the host maps more and
// gives back, by what the device reports to host memory every step. The host
// never waits for a report: it assumes that every step since then grew as much
// as one can.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_POOLMEMORY_H
#define SINKSTATE_CUDA_POOLMEMORY_H

#include "cuda/Memory.h"
#include "cuda/MappedRange.h"
#include "cuda/RowPoolLayout.h"
#include "cuda/device/pool.cuh"

#include <algorithm>
#include <atomic>

namespace sinkstate::runtime::cuda {

/// How many chunks a pool should have: those in use, and room for the steps that
/// nobody has seen yet and for two more. What those two will ask the device has
/// foreseen, apart from slots that have joined since; where it has not, as much as
/// if every state that is due in the two kept all its pairs. Where that is more, as
/// steps were lately.
class PoolDemand {
public:
  explicit PoolDemand(const RowPoolSizes &sizes) : sizes(&sizes) {}

  struct Slots {
    int64_t inUse = 0;
    /// Of those, made fresh since the last call (some may have had owners before), or
    /// given another position.
    int64_t joined = 0;
    /// Of those, made fresh behind this call, if at all.
    int64_t joining = 0;
  };
  /// `unseen`: steps queued after the report.
  int64_t chunks(const ss::PoolReport &report, const Slots &slots,
                 int64_t unseen);
  /// What this report says was taken, no step took: it was placed from outside,
  /// and says nothing of the steps to come.
  void ignore(const ss::PoolReport &report) { ignored = report.step; }
  /// Chunks that one step may take, by the report that chunks() was asked for last.
  int64_t stepChunks() const { return std::max(certainChunks(), recentChunks()); }
  /// No more than these, where that report is of the last step.
  int64_t certainChunks() const {
    return blind > 0 ? worstChunks(inUse) : foreseen + worstChunks(unknown);
  }

private:
  int64_t worstChunks(int64_t slots) const;
  int64_t recentChunks() const;
  void look(const ss::PoolReport &report, const Slots &slots, int64_t unseen);

  const RowPoolSizes *sizes;
  double recent = 0; ///< chunks of the largest step, slowly forgotten
  int64_t lastStep = 0, ignored = 0;
  /// Calls for which what was foreseen is not relied upon.
  int64_t blind = 1;
  int64_t foreseen = 0;
  /// Slots in use, and those that no report knows of, joining ones included.
  int64_t inUse = 0, unknown = 0;
  /// Those that have joined, and the report that will know of them.
  int64_t joined = 0, joinedStep = 0;
};

class PoolMemory {
public:
  /// `limit`: bytes that all pools may hold together. Its tables are the
  /// caller's.
  struct Budget {
    int64_t limit = 0; ///< 0: none
    int64_t held = 0, peak = 0;
    void add(int64_t bytes);
    bool admits(int64_t more) const { return limit == 0 || held + more <= limit; }
    bool isShort() const { return limit > 0 && held > limit - limit / 8; }
  };

  PoolMemory(std::shared_ptr<const Context> context, const RowPoolSizes &sizes,
             Budget &budget);
  PoolMemory(const PoolMemory &) = delete;
  PoolMemory &operator=(const PoolMemory &) = delete;

  CUdeviceptr rows() const { return rowRange.address(); }
  CUdeviceptr weights() const { return weightRange.address(); }
  const int64_t *limitOnDevice() const { return words.onDevice<int64_t>(0); }
  ss::PoolReport *reportOnDevice() const {
    return words.onDevice<ss::PoolReport>(kReportOffset);
  }

  /// A step was queued that reports.
  void noteStep() { ++queued; }
  enum class Room {
    Enough,
    Short, ///< the next step may find none
    None   ///< there is no memory for any
  };
  /// The calls of one tending, for all pools one after the other. First what the
  /// device has reported.
  /// `isCurrent`: nothing is queued behind it.
  void look(const PoolDemand::Slots &slots, bool isCurrent);
  /// Unmaps what lies behind a lower limit, if that report knows of it and no state
  /// has anything there.
  void unmapUnused();
  /// Then memory for what the next step may take, as much as there is; and when
  /// every pool has that, a share of the room for steps behind it.
  void mapNeeded() { growTo(needed); }
  void mapWanted(double share) {
    growTo(needed + int64_t(share * double(wanted - needed)));
  }
  /// Whether the next step may find no memory.
  bool lacks() const { return needed > allowed(); }
  /// Bytes to map for all that is wanted.
  int64_t wantedBytes() const { return additionFor(wanted); }
  /// Then gives back what is too much; at once all that the next step does not need
  /// where a pool `lacks` it. `keep`: let no state move but before its compaction.
  Room settle(bool keep, bool othersLack);
  /// A lower limit was set that no report has confirmed.
  bool waitsForReport() const { return allowed() < mappedChunks(); }
  /// From now on memory grows only: what lies where now can be put back.
  void keepMapped() { grows = true; }
  /// Blocks were given between steps, and reported.
  void notePlaced() { demand.ignore(report()); }
  /// Room for `chunks` more than are in use; false: there is no memory.
  bool reserve(int64_t chunks);

  /// Rows from the beginning that are mapped, for any thread.
  int64_t readableRows() const {
    return readable.load(std::memory_order_acquire);
  }
  int64_t heldBytes() const {
    return int64_t(rowRange.mappedBytes() + weightRange.mappedBytes());
  }
  ss::PoolReport report() const;
  int64_t mappedChunks() const;

private:
  static constexpr size_t kReportOffset = 64;

  void growTo(int64_t chunks);
  int64_t additionFor(int64_t chunks) const;
  bool mapChunks(int64_t chunks);
  void unmapBehind(int64_t chunks);
  void giveBack(int64_t most, bool atOnce);
  void noteReadable();
  void allow(int64_t chunks);
  void squeeze(bool wanted);
  size_t bytesOf(int64_t chunks) const;
  /// What the device may use, as it reads it.
  volatile int64_t &limit() const { return *words.at<volatile int64_t>(0); }
  int64_t allowed() const { return ss::chunks_of(limit()); }

  const RowPoolSizes *sizes;
  Budget *budget;
  MappedRange rowRange, weightRange;
  PinnedMemory words; ///< the limit, and the report
  std::atomic<int64_t> readable{0};
  PoolDemand demand;
  ss::PoolReport seen{};            ///< when it was last looked at
  int64_t needed = 0, wanted = 0;   ///< chunks, by that report
  bool isInUse = false;             ///< some slot has an owner
  int64_t queued = 0;
  int64_t generation = 0;
  int64_t calls = 0, mostWanted = 0; ///< since memory was last given back
  int64_t squeezedCalls = 0;         ///< for which states are still squeezed
  bool grows = false;
};

} // namespace sinkstate::runtime::cuda

#endif
