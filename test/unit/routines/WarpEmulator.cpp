#include "WarpEmulator.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <ucontext.h>
#include <vector>

namespace sinkstate::test {
namespace {

constexpr int numLanes = 32;
constexpr size_t stackSize = 256 * 1024;

struct Lane {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  std::source_location where;
  int meetings = 0;
  bool finished = false;
};

struct Warp {
  ucontext_t scheduler;
  std::array<Lane, numLanes> lanes;
  // Two sets, so that a fast lane may publish for the next meeting while a
  // slow one still reads for this one.
  alignas(16) char slots[2][numLanes][16];
  const std::function<void()> *body = nullptr;
  int running = 0;
  int placeInBlock = 0;
};

thread_local Warp warp;

void enter() {
  (*warp.body)();
  warp.lanes[warp.running].finished = true;
  // uc_link brings the fiber back to the scheduler.
}

void start(const std::function<void()> &body) {
  warp.body = &body;
  for (Lane &lane : warp.lanes) {
    if (!lane.stack)
      lane.stack.reset(new char[stackSize]);
    lane.meetings = 0;
    lane.finished = false;
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.get();
    lane.context.uc_stack.ss_size = stackSize;
    lane.context.uc_link = &warp.scheduler;
    makecontext(&lane.context, enter, 0);
  }
}

/// Whether every lane stopped at the same place.
bool together() {
  const Lane &first = warp.lanes[0];
  for (int i = 1; i < numLanes; ++i) {
    const Lane &lane = warp.lanes[i];
    if (lane.finished == first.finished &&
        (lane.finished || lane.where.line() == first.where.line()))
      continue;
    std::fprintf(stderr, "lanes diverge: lane 0 %s %s:%u, lane %d %s %s:%u\n",
                 first.finished ? "ended after" : "is at",
                 first.where.file_name(), unsigned(first.where.line()), i,
                 lane.finished ? "ended after" : "is at",
                 lane.where.file_name(), unsigned(lane.where.line()));
    return false;
  }
  return true;
}

} // namespace

int currentLane() { return warp.running; }

void setWarpInBlock(int place) { warp.placeInBlock = place; }
int warpInBlock() { return warp.placeInBlock; }

void meet(std::source_location where, const void *mine, void *theirs,
          size_t size, int from) {
  Lane &lane = warp.lanes[warp.running];
  auto &slots = warp.slots[lane.meetings++ & 1];
  if (size)
    std::memcpy(slots[warp.running], mine, size);
  lane.where = where;
  swapcontext(&lane.context, &warp.scheduler);
  if (size)
    std::memcpy(theirs, slots[from], size);
}

bool runWarp(LaneOrder order, const std::function<void()> &body) {
  start(body);
  std::vector<int> lanes(numLanes);
  std::iota(lanes.begin(), lanes.end(), 0);
  if (order == LaneOrder::Descending)
    std::reverse(lanes.begin(), lanes.end());
  std::minstd_rand engine(1);
  while (!warp.lanes[0].finished) {
    if (order == LaneOrder::Shuffled)
      std::shuffle(lanes.begin(), lanes.end(), engine);
    for (int lane : lanes) {
      warp.running = lane;
      swapcontext(&warp.scheduler, &warp.lanes[lane].context);
    }
    if (!together())
      return false;
  }
  return true;
}

} // namespace sinkstate::test
