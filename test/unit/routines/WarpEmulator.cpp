#include "WarpEmulator.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
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
  bool waitsForBlock = false;
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

thread_local std::deque<Warp> block(1);
thread_local Warp *warp = &block[0]; // that is running

void enter() {
  (*warp->body)();
  warp->lanes[warp->running].finished = true;
  // uc_link brings the fiber back to the scheduler.
}

void start(const std::function<void()> &body) {
  warp->body = &body;
  for (Lane &lane : warp->lanes) {
    if (!lane.stack)
      lane.stack.reset(new char[stackSize]);
    lane.meetings = 0;
    lane.finished = lane.waitsForBlock = false;
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.get();
    lane.context.uc_stack.ss_size = stackSize;
    lane.context.uc_link = &warp->scheduler;
    makecontext(&lane.context, enter, 0);
  }
}

/// Whether every lane stopped at the same place.
bool together() {
  const Lane &first = warp->lanes[0];
  for (int i = 1; i < numLanes; ++i) {
    const Lane &lane = warp->lanes[i];
    if (lane.finished == first.finished &&
        (lane.finished || (lane.where.line() == first.where.line() &&
                           lane.waitsForBlock == first.waitsForBlock)))
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

/// The order of n lanes, or warps, from one meeting to the next.
class Turns {
public:
  Turns(LaneOrder order, int n) : order(order), members(n) {
    std::iota(members.begin(), members.end(), 0);
    if (order == LaneOrder::Descending)
      std::reverse(members.begin(), members.end());
  }
  const std::vector<int> &next() {
    if (order == LaneOrder::Shuffled)
      std::shuffle(members.begin(), members.end(), engine);
    return members;
  }

private:
  LaneOrder order;
  std::vector<int> members;
  std::minstd_rand engine{1};
};

/// Runs the warp until it ends or waits for the block.
bool runToBarrier(Turns &turns) {
  for (Lane &lane : warp->lanes)
    lane.waitsForBlock = false;
  while (!warp->lanes[0].finished && !warp->lanes[0].waitsForBlock) {
    for (int lane : turns.next()) {
      warp->running = lane;
      swapcontext(&warp->scheduler, &warp->lanes[lane].context);
    }
    if (!together())
      return false;
  }
  return true;
}

} // namespace

int currentLane() { return warp->running; }

void setWarpInBlock(int place) { warp->placeInBlock = place; }
int warpInBlock() { return warp->placeInBlock; }

void meet(std::source_location where, const void *mine, void *theirs,
          size_t size, int from) {
  Lane &lane = warp->lanes[warp->running];
  auto &slots = warp->slots[lane.meetings++ & 1];
  if (size)
    std::memcpy(slots[warp->running], mine, size);
  lane.where = where;
  swapcontext(&lane.context, &warp->scheduler);
  if (size)
    std::memcpy(theirs, slots[from], size);
}

void meetBlock(std::source_location where) {
  Lane &lane = warp->lanes[warp->running];
  lane.where = where;
  lane.waitsForBlock = true;
  swapcontext(&lane.context, &warp->scheduler);
}

bool runWarp(LaneOrder order, const std::function<void()> &body) {
  warp = &block[0];
  start(body);
  Turns turns(order, numLanes);
  while (!warp->lanes[0].finished)
    if (!runToBarrier(turns))
      return false;
  return true;
}

bool runBlock(LaneOrder order, int warps, const std::function<void()> &body) {
  while (int(block.size()) < warps)
    block.emplace_back();
  for (int w = 0; w < warps; ++w) {
    warp = &block[w];
    warp->placeInBlock = w;
    start(body);
  }
  Turns turns(order, numLanes), warpTurns(order, warps);
  bool hasMore = true, isTogether = true;
  while (hasMore && isTogether) {
    hasMore = false;
    for (int w : warpTurns.next()) {
      warp = &block[w];
      if (!warp->lanes[0].finished)
        isTogether = runToBarrier(turns) && isTogether;
      hasMore |= !warp->lanes[0].finished;
    }
  }
  warp = &block[0];
  warp->placeInBlock = 0;
  return isTogether;
}

} // namespace sinkstate::test
