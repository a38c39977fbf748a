//===- ReferenceKernels.cpp - Entry points and manifest -------------------===//

#include "ReferenceKernels.h"

#include "KernelArgumentOrder.h"
#include "KernelBodies.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace sinkstate::reference {
namespace {

/// A kernel is a plain function without a context, so every layer that is
/// alive takes one of these places, and every place has functions of its own.
constexpr size_t kPlaces = 128;
std::array<const LayerSpec *, kPlaces> layerAt;
std::mutex placesMutex;

/// Takes arguments one by one, in the order of KernelArgumentOrder.h.
class ArgumentReader {
public:
  explicit ArgumentReader(const void *const *args) : next(args) {}
  template <typename T> T take() { return *static_cast<const T *>(*next++); }
  BatchRows takeRows() {
    auto *data = take<const float *>();
    return {data, take<int64_t>()};
  }
  StateTables takeTables() {
    StateTables t{};
    t.rows = take<float *>();
    t.weights = take<float *>();
    t.rowBase = take<const int64_t *>();
    t.rank = take<int32_t *>();
    t.status = take<int32_t *>();
    t.count = take<const int32_t *>();
    t.bufferK = take<float *>();
    t.bufferU = take<float *>();
    t.bufferG = take<float *>();
    return t;
  }

private:
  const void *const *next;
};

template <size_t Place>
void decodeEntry(const void *const *args, const ss_routine_table *,
                 int64_t begin, int64_t end) {
  const LayerSpec &layer = *layerAt[Place];
  ArgumentReader reader(args);
  DecodeInputs in{};
  StateTables tables{};
  if (layer.denseForm)
    in.dense = reader.take<float *>();
  else
    tables = reader.takeTables();
  in.slots = reader.take<const int32_t *>();
  in.q = reader.takeRows();
  in.k = reader.takeRows();
  in.v = reader.takeRows();
  in.gate = reader.takeRows();
  if (layer.hasBeta())
    in.beta = reader.takeRows();
  in.y = reader.take<float *>();
  in.yStride = reader.take<int64_t>();
  in.aLog = reader.take<const float *>();
  in.dtBias = reader.take<const float *>();
  if (layer.denseForm) {
    for (int64_t program = begin; program < end; ++program)
      decodeDenseProgram(layer, in, program);
    return;
  }
  auto *order = reader.take<const int32_t *>();
  const bool ordered = reader.take<int32_t>() != 0;
  for (int64_t program = begin; program < end; ++program)
    decodeProgram(layer, tables, in, ordered ? order[program] : program);
}

template <size_t Place>
void compactEntry(const void *const *args, const ss_routine_table *,
                  int64_t begin, int64_t end) {
  ArgumentReader reader(args);
  const StateTables tables = reader.takeTables();
  auto *work = reader.take<const int32_t *>();
  const int64_t workCount = *reader.take<const int32_t *>();
  CompactPolicy policy{};
  policy.countAhead = reader.take<int32_t>();
  policy.value = reader.take<float>();
  const auto maxRank = reader.take<int32_t>();
  auto *rowCapacity = reader.take<const int32_t *>();
  for (int64_t program = begin; program < std::min(end, workCount);
       ++program) {
    policy.maxRank = std::min(maxRank, rowCapacity[work[program]]);
    compactProgram(*layerAt[Place], tables, work[program], policy);
  }
}

template <size_t Place>
void densifyEntry(const void *const *args, const ss_routine_table *,
                  int64_t begin, int64_t end) {
  ArgumentReader reader(args);
  const StateTables tables = reader.takeTables();
  auto *work = reader.take<const int32_t *>();
  const int64_t workCount = *reader.take<const int32_t *>();
  const auto countAhead = reader.take<int32_t>();
  auto *out = reader.take<float *>();
  auto *outBase = reader.take<const int64_t *>();
  for (int64_t program = begin; program < std::min(end, workCount); ++program)
    densifyProgram(*layerAt[Place], tables, work[program], countAhead,
                   out + outBase[program]);
}

template <size_t Place>
void initEntry(const void *const *args, const ss_routine_table *,
               int64_t begin, int64_t end) {
  ArgumentReader reader(args);
  InitArguments in{};
  in.factors = reader.take<float *>();
  in.weights = reader.take<float *>();
  in.rowBase = reader.take<const int64_t *>();
  in.rank = reader.take<int32_t *>();
  in.status = reader.take<int32_t *>();
  auto *work = reader.take<const int32_t *>();
  const int64_t workCount = *reader.take<const int32_t *>();
  in.matrices = reader.take<const float *>();
  in.matrixBase = reader.take<const int64_t *>();
  in.eps = reader.take<float>();
  in.maxRank = reader.take<int32_t>();
  for (int64_t program = begin; program < std::min(end, workCount); ++program)
    initProgram(*layerAt[Place], in, work[program], program);
}

struct Entries {
  ss_cpu_kernel decode, compact, densify, init;
};

template <size_t... Places>
constexpr std::array<Entries, sizeof...(Places)>
makeEntries(std::index_sequence<Places...>) {
  return {{{decodeEntry<Places>, compactEntry<Places>,
            densifyEntry<Places>, initEntry<Places>}...}};
}
constexpr auto kEntries = makeEntries(std::make_index_sequence<kPlaces>());

size_t takePlace(const LayerSpec *layer) {
  std::lock_guard lock(placesMutex);
  for (size_t place = 0; place < kPlaces; ++place)
    if (!layerAt[place]) {
      layerAt[place] = layer;
      return place;
    }
  throw std::runtime_error("too many reference layers alive at once");
}

nlohmann::json kernelJson(const std::string &name, const char *role,
                          const std::vector<NamedArgument> &arguments) {
  nlohmann::json list = nlohmann::json::array();
  for (const NamedArgument &argument : arguments)
    list.push_back({{"name", argument.name}, {"type", argument.type}});
  return {{"name", name},
          {"role", role},
          {"programs_per_block", 1},
          {"args", list}};
}

nlohmann::json layerJson(const LayerSpec &layer) {
  nlohmann::json kernels = {{"decode", layer.name + "_decode"}};
  if (!layer.denseForm) {
    kernels["compact"] = layer.name + "_compact";
    kernels["densify"] = layer.name + "_densify";
    if (layer.initKernel)
      kernels["init"] = layer.name + "_init";
  }
  return {{"name", layer.name},
          {"index", layer.index},
          {"type", layer.type},
          {"heads", layer.heads},
          {"key_heads", layer.keyHeads},
          {"dv", layer.dv},
          {"dk", layer.dk},
          {"form", layer.denseForm ? "dense" : "factored"},
          {"active", layer.active},
          {"buffer", layer.buffer},
          {"draft", layer.draft},
          {"storage", "f32"},
          {"channel_decay", layer.channelDecay()},
          {"has_beta", layer.hasBeta()},
          {"policy",
           {{"kind", layer.policyKind}, {"value", layer.policyValue}}},
          {"phase", layer.phase},
          {"compacts", layer.compactsBefore() ? "before" : "after"},
          {"rank", layer.rank()},
          {"kernels", kernels}};
}

} // namespace

std::string referenceManifest(const std::vector<LayerSpec> &layers) {
  nlohmann::json manifest = {{"format", "sinkstate-package"},
                             {"version", 1},
                             {"abi", SS_ABI_VERSION},
                             {"model", "reference"},
                             {"fingerprint", ""},
                             {"compiler", "reference"},
                             {"layers", nlohmann::json::array()},
                             {"kernels", nlohmann::json::array()},
                             {"cpu", nlohmann::json::array()},
                             {"cuda", nlohmann::json::array()}};
  int32_t period = 1;
  for (const LayerSpec &layer : layers) {
    period = std::max(period, layer.buffer);
    manifest["layers"].push_back(layerJson(layer));
    nlohmann::json &kernels = manifest["kernels"];
    kernels.push_back(kernelJson(layer.name + "_decode", "decode",
                                 decodeArguments(layer)));
    if (layer.denseForm)
      continue;
    kernels.push_back(
        kernelJson(layer.name + "_compact", "compact", compactArguments()));
    kernels.push_back(
        kernelJson(layer.name + "_densify", "densify", densifyArguments()));
    if (layer.initKernel)
      kernels.push_back(
          kernelJson(layer.name + "_init", "init", initArguments()));
  }
  manifest["schedule"] = {{"period", period}};
  return manifest.dump(2);
}

KernelSet::KernelSet(std::vector<LayerSpec> layers)
    : specs(std::move(layers)), manifestText(referenceManifest(specs)) {
  for (const LayerSpec &layer : specs)
    places.push_back(takePlace(&layer));
}

KernelSet::~KernelSet() {
  std::lock_guard lock(placesMutex);
  for (size_t place : places)
    layerAt[place] = nullptr;
}

ss_cpu_kernel KernelSet::find(const std::string &name) const {
  for (size_t i = 0; i < specs.size(); ++i) {
    const Entries &entries = kEntries[places[i]];
    if (name == specs[i].name + "_decode")
      return entries.decode;
    if (name == specs[i].name + "_compact")
      return entries.compact;
    if (name == specs[i].name + "_densify")
      return entries.densify;
    if (name == specs[i].name + "_init")
      return entries.init;
  }
  return nullptr;
}

ss_cpu_kernel KernelSet::lookup(void *context, const char *name) {
  return static_cast<KernelSet *>(context)->find(name);
}

} // namespace sinkstate::reference
