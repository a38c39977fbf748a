//===- BoundedQueue.h - Between two stages ----------------------*- C++ -*-===//
#ifndef SINKSTATE_CONSOLIDATION_BOUNDEDQUEUE_H
#define SINKSTATE_CONSOLIDATION_BOUNDEDQUEUE_H

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace sinkstate::consolidation {

/// First in, first out, with a fixed number of places, which are all made with
/// it: nothing is allocated later. Closing it wakes everybody; what is in it is
/// lost then.
template <typename T> class BoundedQueue {
public:
  explicit BoundedQueue(size_t places) : ring(places) {}

  /// Waits for a place. False: the queue was closed.
  bool push(T value) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return closed || size < ring.size(); });
    if (closed)
      return false;
    ring[(first + size++) % ring.size()] = std::move(value);
    changed.notify_all();
    return true;
  }

  /// Waits for a value. Nothing: the queue was closed.
  std::optional<T> pop() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return closed || size > 0; });
    if (closed)
      return std::nullopt;
    return takeFirst();
  }

  std::optional<T> tryPop() {
    std::lock_guard lock(mutex);
    if (closed || size == 0)
      return std::nullopt;
    return takeFirst();
  }

  void close() {
    std::lock_guard lock(mutex);
    closed = true;
    changed.notify_all();
  }

private:
  T takeFirst() {
    T value = std::move(ring[first]);
    first = (first + 1) % ring.size();
    --size;
    changed.notify_all();
    return value;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<T> ring;
  size_t first = 0, size = 0;
  bool closed = false;
};

} // namespace sinkstate::consolidation

#endif
