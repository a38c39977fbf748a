//===- DeviceStaging.cpp - Host arrays beside a GPU engine ----------------===//

#include "DeviceStaging.h"

using namespace tiny_hybrid;

DeviceStaging::~DeviceStaging() {
  for (auto &[name, memory] : arrays)
    (void)ss_device_free(engine, memory);
}

Status DeviceStaging::array(const std::string &name, size_t bytes,
                            void *&memory, bool *isNew) {
  auto [place, inserted] = arrays.try_emplace(name, nullptr);
  if (isNew)
    *isNew = inserted;
  if (inserted &&
      ss_device_malloc(engine, bytes, &place->second) != SS_OK) {
    arrays.erase(place);
    return Error{name + ": " + ss_last_error()};
  }
  memory = place->second;
  return std::nullopt;
}

Status DeviceStaging::setSlots(const std::vector<int32_t> &slots) {
  void *memory = nullptr;
  const size_t bytes = slots.size() * sizeof(int32_t);
  if (Status status = array("slots", bytes, memory))
    return status;
  if (ss_device_copy_in(engine, memory, slots.data(), bytes, nullptr) != SS_OK)
    return Error{std::string("slots: ") + ss_last_error()};
  deviceSlots = static_cast<int32_t *>(memory);
  return std::nullopt;
}

Status DeviceStaging::copyIn(const ss_layer_info &layer,
                             ss_decode_args &args) {
  const size_t rows = size_t(batch), heads = size_t(layer.heads);
  const size_t keys = size_t(layer.key_heads) * size_t(layer.dk);
  const size_t values = heads * size_t(layer.dv);
  const size_t gates = heads * (layer.channel_decay ? size_t(layer.dk) : 1);
  const struct {
    const char *name;
    const float **data;
    size_t count;
    bool isWeight;
  } inputs[] = {{"q", &args.q.data, rows * keys, false},
                {"k", &args.k.data, rows * keys, false},
                {"v", &args.v.data, rows * values, false},
                {"gate", &args.gate.data, rows * gates, false},
                {"beta", &args.beta.data, rows * heads, false},
                {"a_log", &args.a_log, heads, true},
                {"dt_bias", &args.dt_bias, gates, true}};
  for (const auto &input : inputs) {
    if (!*input.data)
      continue;
    void *memory = nullptr;
    bool isNew = false;
    const std::string name = std::string(layer.name) + "." + input.name;
    const size_t bytes = input.count * sizeof(float);
    if (Status status = array(name, bytes, memory, &isNew))
      return status;
    if ((isNew || !input.isWeight) &&
        ss_device_copy_in(engine, memory, *input.data, bytes, nullptr) != SS_OK)
      return Error{name + ": " + ss_last_error()};
    *input.data = static_cast<const float *>(memory);
  }
  void *y = nullptr;
  if (Status status = array(std::string(layer.name) + ".y",
                            rows * values * sizeof(float), y))
    return status;
  args.y = static_cast<float *>(y);
  args.slots = deviceSlots;
  return std::nullopt;
}

Status DeviceStaging::copyOut(const ss_layer_info &layer, float *y) {
  const std::string name = std::string(layer.name) + ".y";
  const size_t count = size_t(batch) * size_t(layer.heads) * size_t(layer.dv);
  if (ss_device_copy_out(engine, y, arrays.at(name), count * sizeof(float),
                         nullptr) != SS_OK)
    return Error{name + ": " + ss_last_error()};
  return std::nullopt;
}
