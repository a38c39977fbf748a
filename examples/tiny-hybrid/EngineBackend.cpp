//===- EngineBackend.cpp - States kept by SinkState -----------------------===//

#include "EngineBackend.h"

using namespace tiny_hybrid;

namespace {

Error lastError(const std::string &what) {
  return Error{what + ": " + ss_last_error()};
}

/// "found 4 heads, expected 2", or nothing where the layers agree.
Status compareLayer(const ss_layer_info &info, LayerKind kind,
                    const RecurrentSizes &sizes) {
  auto differ = [&](const std::string &found, const std::string &expected) {
    return Error{"layer " + std::to_string(info.index) +
                 " of the package: found " + found + ", expected " + expected +
                 " as config.json says"};
  };
  if (std::string(info.type) != toString(kind))
    return differ(std::string("type ") + info.type,
                  std::string("type ") + toString(kind));
  const struct {
    const char *name;
    int32_t found;
    int expected;
  } values[] = {{"heads", info.heads, sizes.heads},
                {"key heads", info.key_heads, sizes.keyHeads},
                {"dk", info.dk, sizes.dk},
                {"dv", info.dv, sizes.dv},
                {"channel decay", info.channel_decay, kind == LayerKind::Kda},
                {"beta input", info.has_beta, kind != LayerKind::Mamba2}};
  for (const auto &value : values)
    if (value.found != value.expected)
      return differ(std::string(value.name) + " " + std::to_string(value.found),
                    std::to_string(value.expected));
  return std::nullopt;
}

} // namespace

Status EngineBackend::setSinks(const SinkValues &sinks) {
  for (size_t layer = 0; layer < infos.size(); ++layer) {
    if (!infos[layer].sink_form)
      continue;
    const auto found = sinks.find(infos[layer].index);
    if (found == sinks.end())
      return Error{"engine: no mean values for layer " +
                   std::to_string(infos[layer].index) +
                   ", which is of form sink, expected ss-run with --sink FILE, "
                   "or a package of another form"};
    if (ss_engine_set_sink(handle, int32_t(layer), found->second.data(),
                           int64_t(found->second.size())) != SS_OK)
      return lastError("sinks of layer " + std::to_string(infos[layer].index));
  }
  return std::nullopt;
}

Result<std::unique_ptr<EngineBackend>>
EngineBackend::create(const ss_package *package, ss_engine_options options,
                      const Config &config, int batch,
                      const SinkValues &sinks) {
  std::unique_ptr<EngineBackend> backend(new EngineBackend);
  options.slots = batch;
  const ss_result made = ss_engine_create(package, &options, &backend->handle);
  if (made != SS_OK)
    return Error{std::string("engine: ") + ss_last_error(),
                 made == SS_DEVICE_UNAVAILABLE};
  if (Status status = backend->readLayers(config))
    return std::move(*status);
  if (Status status = backend->setSinks(sinks))
    return std::move(*status);
  for (int request = 0; request < batch; ++request) {
    int32_t slot;
    if (ss_slot_alloc(backend->handle, &slot, nullptr) != SS_OK)
      return lastError("slot of request " + std::to_string(request));
    // Requests that round stochastically do so independently.
    if (ss_slot_set_rounding_key(backend->handle, slot, uint64_t(request),
                                 nullptr) != SS_OK)
      return lastError("slot of request " + std::to_string(request));
    backend->slotOfRequest.push_back(slot);
  }
  if (options.device == SS_DEVICE_CUDA) {
    backend->staging =
        std::make_unique<DeviceStaging>(backend->handle, batch);
    if (Status status = backend->staging->setSlots(backend->slotOfRequest))
      return std::move(*status);
  }
  return backend;
}

EngineBackend::~EngineBackend() {
  staging.reset(); // its memory is the engine's
  if (handle)
    ss_engine_destroy(handle);
}

Status EngineBackend::readLayers(const Config &config) {
  engineLayerOf.assign(config.layers.size(), -1);
  for (int32_t i = 0; i < ss_layer_count(handle); ++i) {
    ss_layer_info info{};
    info.struct_size = sizeof(info);
    if (ss_layer_get_info(handle, i, &info) != SS_OK)
      return lastError("layer " + std::to_string(i) + " of the package");
    if (info.index < 0 || info.index >= int32_t(config.layers.size()) ||
        config.layers[info.index] == LayerKind::Attention)
      return Error{"layer '" + std::string(info.name) +
                   "' of the package: found index " +
                   std::to_string(info.index) +
                   ", expected a recurrent layer of config.json"};
    LayerKind kind = config.layers[info.index];
    if (Status status = compareLayer(info, kind, config.recurrent(kind)))
      return status;
    engineLayerOf[info.index] = i;
    infos.push_back(info);
  }
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (config.layers[i] != LayerKind::Attention && engineLayerOf[i] < 0)
      return Error{"package: found no layer with index " + std::to_string(i) +
                   ", expected the " + toString(config.layers[i]) +
                   " layer of config.json"};
  return std::nullopt;
}

Status EngineBackend::decodeLayer(int layer, const StateInput &input,
                                  float *y) {
  ss_decode_args args{};
  args.struct_size = sizeof(args);
  args.batch = static_cast<int32_t>(slotOfRequest.size());
  args.slots = slotOfRequest.data();
  args.q = {input.q, 0};
  args.k = {input.k, 0};
  args.v = {input.v, 0};
  args.gate = {input.gate, 0};
  args.beta = {input.beta, 0};
  args.a_log = input.aLog;
  args.dt_bias = input.dtBias;
  args.y = y;
  const ss_layer_info &info = infos[engineLayerOf[layer]];
  if (staging)
    if (Status status = staging->copyIn(info, args))
      return status;
  if (!stepHasBegun &&
      ss_begin_step(handle, args.slots, args.batch, nullptr) != SS_OK)
    return lastError("beginning of a step");
  stepHasBegun = true;
  if (ss_decode_layer(handle, engineLayerOf[layer], &args) != SS_OK)
    return lastError("layer " + std::to_string(layer));
  return staging ? staging->copyOut(info, y) : std::nullopt;
}

Status EngineBackend::endStep() {
  const int32_t *slots = staging ? staging->slots() : slotOfRequest.data();
  if (ss_end_step(handle, slots, static_cast<int32_t>(slotOfRequest.size()),
                  nullptr) != SS_OK)
    return lastError("end of a step");
  stepHasBegun = false;
  return std::nullopt;
}

Status EngineBackend::initialise(int layer, const std::vector<float> &states) {
  const ss_layer_info &info = infos[engineLayerOf[layer]];
  ss_dense_layout layout{};
  layout.struct_size = sizeof(layout);
  layout.type = SS_ELEMENT_F32;
  layout.dv_stride = 1;
  layout.dk_stride = info.dv;
  layout.head_stride = layout.dk_stride * info.dk;
  layout.slot_stride = layout.head_stride * info.heads;
  const size_t bytes = states.size() * sizeof(float);
  void *memory = nullptr; // of the engine's device
  if (ss_device_malloc(handle, bytes, &memory) != SS_OK)
    return lastError("memory for the states of layer " +
                     std::to_string(layer));
  const bool done =
      ss_device_copy_in(handle, memory, states.data(), bytes, nullptr) ==
          SS_OK &&
      ss_state_init(handle, engineLayerOf[layer], slotOfRequest.data(), nullptr,
                    static_cast<int32_t>(slotOfRequest.size()), memory,
                    &layout, nullptr, nullptr) == SS_OK;
  const Error error = lastError("states of layer " + std::to_string(layer));
  ss_device_free(handle, memory);
  return done ? Status() : Status(error);
}

Status EngineBackend::setPosition(int64_t tokens) {
  for (int32_t slot : slotOfRequest)
    if (ss_slot_set_position(handle, slot, tokens, nullptr) != SS_OK)
      return lastError("position of slot " + std::to_string(slot));
  return std::nullopt;
}

Result<ss_statistics> EngineBackend::statistics() const {
  ss_statistics statistics{};
  statistics.struct_size = sizeof(statistics);
  if (ss_engine_statistics(handle, &statistics) != SS_OK)
    return lastError("statistics");
  return statistics;
}

Result<int64_t> EngineBackend::snapshotBytes() const {
  int64_t sum = 0;
  for (int32_t slot : slotOfRequest) {
    size_t bytes = 0;
    if (ss_snapshot_size(handle, slot, &bytes, nullptr) != SS_OK)
      return lastError("snapshot of slot " + std::to_string(slot));
    sum += static_cast<int64_t>(bytes);
  }
  return sum;
}

Result<std::vector<int32_t>> EngineBackend::ranks(int layer,
                                                  int request) const {
  std::vector<int32_t> ranks(infos[layer].heads);
  if (ss_state_ranks(handle, layer, slotOfRequest[request], ranks.data()) !=
      SS_OK)
    return lastError("ranks of layer " + std::to_string(layer));
  return ranks;
}

Result<int> EngineBackend::checkStates() const {
  int tightened = 0;
  for (size_t layer = 0; layer < infos.size(); ++layer) {
    std::vector<int32_t> status(infos[layer].heads);
    for (size_t request = 0; request < slotOfRequest.size(); ++request) {
      if (ss_state_status(handle, static_cast<int32_t>(layer),
                          slotOfRequest[request], status.data()) != SS_OK)
        return lastError("status of layer " + std::to_string(layer));
      for (size_t head = 0; head < status.size(); ++head) {
        tightened += status[head] == SS_STATUS_TIGHTENED;
        if ((status[head] & ~SS_STATUS_TIGHTENED) != 0)
          return Error{"layer " + std::to_string(infos[layer].index) +
                       ", request " + std::to_string(request) + ", head " +
                       std::to_string(head) + ": found status " +
                       std::to_string(status[head]) +
                       ", expected 0 or 8 (1: not finite, 4: an SVD did not "
                       "converge, 8: rows dropped for lack of room)"};
      }
    }
  }
  return tightened;
}
