/* SinkState runtime for C++: owners and exceptions over sinkstate.h.
 *
 *   auto package = sinkstate::Package::open("my-model");
 *   auto options = sinkstate::engineOptions();
 *   options.slots = 8;
 *   sinkstate::Engine engine(package, options);
 *   sinkstate::Slot slot(engine);
 *   engine.decodeLayer(0, args);
 *   engine.endStep({slot.index()});
 */
#ifndef SINKSTATE_HPP
#define SINKSTATE_HPP

#include "sinkstate/sinkstate.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinkstate {

/// A failed call: its result code and the line of ss_last_error().
class Exception : public std::runtime_error {
public:
  explicit Exception(ss_result result)
      : std::runtime_error(ss_last_error()), result(result) {}
  ss_result code() const noexcept { return result; }

private:
  ss_result result;
};

inline void check(ss_result result) {
  if (result != SS_OK)
    throw Exception(result);
}

inline ss_engine_options engineOptions() {
  ss_engine_options options;
  ss_engine_options_init(&options);
  return options;
}

/// One callback for the process; null: none.
inline void setLog(ss_log_callback callback, void *context,
                   ss_log_level most = SS_LOG_INFO) {
  check(ss_log_set(callback, context, most));
}

/// Decode arguments with struct_size set and everything else zero.
inline ss_decode_args decodeArgs() {
  ss_decode_args args = {};
  args.struct_size = sizeof args;
  return args;
}

class Package {
public:
  static Package open(const std::string &folder) {
    ss_package *package = nullptr;
    check(ss_package_open(folder.c_str(), &package));
    return Package(package);
  }
  static Package fromMemory(std::string_view manifest, ss_kernel_lookup lookup,
                            void *context) {
    ss_package *package = nullptr;
    check(ss_package_from_memory(manifest.data(), manifest.size(), lookup,
                                 context, &package));
    return Package(package);
  }

  ss_memory_plan plan(const ss_engine_options &options) const {
    ss_memory_plan plan = {};
    plan.struct_size = sizeof plan;
    check(ss_engine_plan(get(), &options, &plan));
    return plan;
  }
  ss_package *get() const noexcept { return handle.get(); }

private:
  struct Close {
    void operator()(ss_package *p) const noexcept { ss_package_close(p); }
  };
  explicit Package(ss_package *package) : handle(package) {}
  std::unique_ptr<ss_package, Close> handle;
};

class Engine {
public:
  Engine(const Package &package, const ss_engine_options &options) {
    ss_engine *engine = nullptr;
    check(ss_engine_create(package.get(), &options, &engine));
    handle.reset(engine);
  }

  int32_t layerCount() const noexcept { return ss_layer_count(get()); }
  ss_layer_info layerInfo(int32_t layer) const {
    ss_layer_info info = {};
    info.struct_size = sizeof info;
    check(ss_layer_get_info(get(), layer, &info));
    return info;
  }

  int32_t allocateSlot(void *stream = nullptr) {
    int32_t slot = -1;
    check(ss_slot_alloc(get(), &slot, stream));
    return slot;
  }
  void freeSlot(int32_t slot) { check(ss_slot_free(get(), slot)); }
  void resetSlot(int32_t slot, void *stream = nullptr) {
    check(ss_slot_reset(get(), slot, stream));
  }

  /// [heads, dv] of a layer of form "sink".
  void setSink(int32_t layer, const std::vector<float> &means) {
    check(ss_engine_set_sink(get(), layer, means.data(),
                             int64_t(means.size())));
  }
  /// Where the layer's heads begin in the whole model: stochastic rounding.
  void setFirstHead(int32_t layer, int32_t head) {
    check(ss_engine_set_first_head(get(), layer, head));
  }
  void setRoundingKey(int32_t slot, uint64_t key, void *stream = nullptr) {
    check(ss_slot_set_rounding_key(get(), slot, key, stream));
  }

  void decodeLayer(int32_t layer, const ss_decode_args &args) {
    check(ss_decode_layer(get(), layer, &args));
  }
  /// `slots` is memory of the engine's device.
  void beginStep(const int32_t *slots, int32_t batch, void *stream = nullptr) {
    check(ss_begin_step(get(), slots, batch, stream));
  }
  void endStep(const int32_t *slots, int32_t batch, void *stream = nullptr) {
    check(ss_end_step(get(), slots, batch, stream));
  }
  /// Gives the step up; slots that its layers have changed are to be reset.
  void cancelStep(void *stream = nullptr) {
    check(ss_cancel_step(get(), stream));
  }
  void endStep(const std::vector<int32_t> &slots) {
    endStep(slots.data(), int32_t(slots.size()));
  }

  void decodeTokens(int32_t layer, const ss_decode_args &args,
                    const ss_token_args &tokens) {
    check(ss_decode_layer_tokens(get(), layer, &args, &tokens));
  }
  void rollback(int32_t slot, int32_t tokens, void *stream = nullptr) {
    check(ss_slot_rollback(get(), slot, tokens, stream));
  }
  int32_t rollbackRoom(int32_t slot) const {
    int32_t tokens = 0;
    check(ss_slot_rollback_room(get(), slot, &tokens));
    return tokens;
  }
  int64_t position(int32_t slot) const {
    int64_t position = 0;
    check(ss_slot_position(get(), slot, &position));
    return position;
  }

  std::vector<std::byte> snapshot(int32_t slot, void *stream = nullptr) {
    size_t bytes = 0;
    check(ss_snapshot_size(get(), slot, &bytes, stream));
    std::vector<std::byte> snapshot(bytes);
    check(ss_snapshot_write(get(), slot, snapshot.data(), bytes, nullptr,
                            stream));
    return snapshot;
  }
  void restore(int32_t slot, const std::vector<std::byte> &snapshot,
               void *stream = nullptr) {
    check(ss_snapshot_restore(get(), slot, snapshot.data(), snapshot.size(),
                              stream));
  }
  /// One range of heads per layer; none: all heads of every layer.
  void restoreHeads(int32_t slot, const std::vector<std::byte> &snapshot,
                    const std::vector<ss_head_range> &ranges,
                    void *stream = nullptr) {
    check(ss_snapshot_restore_heads(get(), slot, snapshot.data(),
                                    snapshot.size(),
                                    ranges.empty() ? nullptr : ranges.data(),
                                    int32_t(ranges.size()), stream));
  }

  void fork(int32_t from, int32_t to, void *stream = nullptr) {
    check(ss_slot_fork(get(), from, to, stream));
  }
  void setPosition(int32_t slot, int64_t position, void *stream = nullptr) {
    check(ss_slot_set_position(get(), slot, position, stream));
  }

  /// Slots of any type and padding; struct_size may be left out.
  void beginStepRows(ss_rows rows) {
    rows.struct_size = sizeof rows;
    check(ss_begin_step_rows(get(), &rows));
  }
  void endStepRows(ss_rows rows) {
    rows.struct_size = sizeof rows;
    check(ss_end_step_rows(get(), &rows));
  }

  void tend(void *stream = nullptr) { check(ss_engine_tend(get(), stream)); }

  void synchronize(void *stream = nullptr) {
    check(ss_engine_synchronize(get(), stream));
  }

  /// H of every head, [heads, dv, dk].
  std::vector<float> densify(int32_t layer, int32_t slot) {
    ss_layer_info info = layerInfo(layer);
    std::vector<float> state(size_t(info.heads) * size_t(info.dv) *
                             size_t(info.dk));
    check(ss_state_densify(get(), layer, slot, state.data()));
    return state;
  }
  std::vector<int32_t> ranks(int32_t layer, int32_t slot) const {
    std::vector<int32_t> ranks(size_t(layerInfo(layer).heads));
    check(ss_state_ranks(get(), layer, slot, ranks.data()));
    return ranks;
  }
  std::vector<int32_t> status(int32_t layer, int32_t slot) const {
    std::vector<int32_t> status(size_t(layerInfo(layer).heads));
    check(ss_state_status(get(), layer, slot, status.data()));
    return status;
  }
  ss_layer_statistics layerStatistics(int32_t layer) const {
    ss_layer_statistics statistics = {};
    statistics.struct_size = sizeof statistics;
    check(ss_layer_get_statistics(get(), layer, &statistics));
    return statistics;
  }
  ss_statistics statistics() const {
    ss_statistics statistics = {};
    statistics.struct_size = sizeof statistics;
    check(ss_engine_statistics(get(), &statistics));
    return statistics;
  }
  ss_engine *get() const noexcept { return handle.get(); }

private:
  struct Destroy {
    void operator()(ss_engine *e) const noexcept { ss_engine_destroy(e); }
  };
  std::unique_ptr<ss_engine, Destroy> handle;
};

/// Memory of an engine's device. The engine must outlive it.
template <typename T> class DeviceArray {
public:
  DeviceArray(Engine &engine, size_t size) : owner(engine.get()), count(size) {
    void *memory = nullptr;
    check(ss_device_malloc(owner, std::max<size_t>(1, size) * sizeof(T),
                           &memory));
    begin = static_cast<T *>(memory);
  }
  DeviceArray(DeviceArray &&other) noexcept
      : owner(other.owner), begin(std::exchange(other.begin, nullptr)),
        count(other.count) {}
  DeviceArray &operator=(DeviceArray &&) = delete;
  ~DeviceArray() { (void)ss_device_free(owner, begin); }

  T *data() const noexcept { return begin; }
  size_t size() const noexcept { return count; }
  void copyIn(const std::vector<T> &values, void *stream = nullptr) {
    if (!values.empty())
      check(ss_device_copy_in(owner, begin, values.data(),
                              values.size() * sizeof(T), stream));
  }
  std::vector<T> copyOut(void *stream = nullptr) const {
    std::vector<T> values(count);
    if (count > 0)
      check(ss_device_copy_out(owner, values.data(), begin, count * sizeof(T),
                               stream));
    return values;
  }

private:
  ss_engine *owner;
  T *begin = nullptr;
  size_t count;
};

/// A slot for as long as the object lives. The engine must outlive it.
class Slot {
public:
  explicit Slot(Engine &engine)
      : engine(engine.get()), slot(engine.allocateSlot()) {}
  Slot(Slot &&other) noexcept
      : engine(std::exchange(other.engine, nullptr)), slot(other.slot) {}
  Slot &operator=(Slot &&other) noexcept {
    std::swap(engine, other.engine);
    std::swap(slot, other.slot);
    return *this;
  }
  ~Slot() {
    if (engine)
      (void)ss_slot_free(engine, slot);
  }
  int32_t index() const noexcept { return slot; }

private:
  ss_engine *engine;
  int32_t slot;
};

} // namespace sinkstate

#endif
