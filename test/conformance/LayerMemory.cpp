//===- LayerMemory.cpp - The tables of one layer, for single kernels ------===//

#include "LayerMemory.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

namespace sinkstate::conformance {

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

FloatArray::FloatArray(int64_t size)
    : storage(size_t(size) + 16), offset(0), count(size) {
  std::memset(storage.data(), 0xFF, storage.size() * sizeof(float));
  while (reinterpret_cast<uintptr_t>(storage.data() + offset) % 64 != 0)
    ++offset;
}

std::vector<float> FloatArray::copy() const {
  auto begin = storage.begin() + offset;
  return {begin, begin + count};
}

static int64_t pairsOf(const reference::LayerSpec &layer) {
  return layer.buffer + layer.draft;
}

LayerMemory::LayerMemory(const reference::LayerSpec &layer, int32_t slots)
    : layer(layer), slots(slots),
      rows(states() * layer.rank() * (layer.dk + layer.dv)),
      weights(states() * layer.rank()),
      bufferK(int64_t(slots) * layer.keyHeads * pairsOf(layer) * layer.dk),
      bufferU(states() * pairsOf(layer) * layer.dv),
      bufferG(states() * pairsOf(layer) * decayChannels()),
      rank(size_t(states()), 0), status(size_t(states()), 0),
      count(size_t(slots), 0) {
  for (int64_t state = 0; state < states(); ++state)
    rowBase.push_back(state * layer.rank());
}

float *LayerMemory::key(int64_t state, int64_t pair) {
  const int64_t slot = state / layer.heads, head = state % layer.heads;
  const int64_t keyHead = head / (layer.heads / layer.keyHeads);
  return bufferK.data() +
         ((slot * layer.keyHeads + keyHead) * pairsOf(layer) + pair) * layer.dk;
}

float *LayerMemory::update(int64_t state, int64_t pair) {
  return bufferU.data() + (state * pairsOf(layer) + pair) * layer.dv;
}

float *LayerMemory::logDecay(int64_t state, int64_t pair) {
  return bufferG.data() + (state * pairsOf(layer) + pair) * decayChannels();
}

void LayerMemory::addComponent(int64_t state, double componentWeight,
                               const std::vector<double> &v,
                               const std::vector<double> &u) {
  const int64_t i = rank[size_t(state)]++;
  weight(state, i) = float(componentWeight);
  std::copy(v.begin(), v.end(), row(state, i));
  std::copy(u.begin(), u.end(), row(state, i) + layer.dk);
}

void LayerMemory::setPair(int64_t state, int64_t pair,
                          const std::vector<double> &k,
                          const std::vector<double> &u,
                          double runningLogDecay) {
  std::copy(k.begin(), k.end(), key(state, pair));
  std::copy(u.begin(), u.end(), update(state, pair));
  std::fill_n(logDecay(state, pair), decayChannels(), float(runningLogDecay));
}

std::vector<double> LayerMemory::matrix(int64_t state) {
  const reference::StateTables tables = {
      rows.data(),    weights.data(), rowBase.data(),
      rank.data(),    status.data(),  count.data(),
      bufferK.data(), bufferU.data(), bufferG.data()};
  const reference::StateView view(layer, tables, state);
  return view.matrix(view.runningDecay());
}

std::vector<uint8_t> LayerMemory::bytes() {
  std::vector<uint8_t> all;
  auto add = [&](const void *data, size_t size) {
    auto *begin = static_cast<const uint8_t *>(data);
    all.insert(all.end(), begin, begin + size);
  };
  for (FloatArray *array : {&rows, &weights, &bufferK, &bufferU, &bufferG})
    add(array->data(), size_t(array->size()) * sizeof(float));
  add(rowBase.data(), rowBase.size() * sizeof(int64_t));
  for (std::vector<int32_t> *array : {&rank, &status, &count})
    add(array->data(), array->size() * sizeof(int32_t));
  return all;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Values of kernel arguments by name; they live as long as this object.
class KernelLauncher::Values {
public:
  explicit Values(LayerMemory &memory) {
    changed("rows", memory.rows);
    changed("weights", memory.weights);
    input("row_base", memory.rowBase);
    changed("rank", memory.rank);
    changed("status", memory.status);
    changed("count", memory.count);
    changed("buffer_k", memory.bufferK);
    changed("buffer_u", memory.bufferU);
    changed("buffer_g", memory.bufferG);
  }
  /// An array that kernels may write, or one that they only read.
  template <typename Array>
  void changed(const std::string &name, Array &array) {
    input(name, array);
    arguments[name].result = array.data();
  }
  template <typename Array> void input(const std::string &name, Array &array) {
    KernelArgument &argument = arguments[name];
    argument.array = array.data();
    argument.bytes = size_t(array.size()) * sizeof(*array.data());
  }
  template <typename T> void set(const std::string &name, T value) {
    static_assert(sizeof value <= sizeof(uint64_t));
    std::memcpy(&arguments[name].number, &value, sizeof value);
  }
  KernelArgument operator[](const std::string &name) const {
    auto it = arguments.find(name);
    if (it == arguments.end())
      throw std::runtime_error("a kernel takes '" + name +
                               "', which the suite does not set");
    KernelArgument argument = it->second;
    argument.name = name;
    return argument;
  }

private:
  std::map<std::string, KernelArgument> arguments;
};

KernelLauncher::KernelLauncher(const Model &model, size_t layer)
    : model(model) {
  const nlohmann::json manifest = nlohmann::json::parse(model.manifest());
  auto find = [&](const char *role) {
    Kernel kernel;
    kernel.name = manifest.at("layers").at(layer).at("kernels").at(role);
    for (const nlohmann::json &candidate : manifest.at("kernels"))
      if (candidate.at("name") == kernel.name)
        for (const nlohmann::json &argument : candidate.at("args"))
          kernel.arguments.push_back(argument.at("name"));
    return kernel;
  };
  decodeKernel = find("decode");
  compactKernel = find("compact");
  densifyKernel = find("densify");
}

void KernelLauncher::launch(const Kernel &kernel, const Values &values,
                            int64_t programs, int64_t programsAtOnce) const {
  std::vector<KernelArgument> arguments;
  for (const std::string &name : kernel.arguments)
    arguments.push_back(values[name]);
  for (int64_t begin = 0; begin < programs;) {
    const int64_t end = begin + std::min(programsAtOnce, programs - begin);
    model.launch(kernel.name, arguments, begin, end);
    begin = end;
  }
}

void KernelLauncher::compact(LayerMemory &memory,
                             const std::vector<int32_t> &work,
                             const CompactArguments &arguments) const {
  Values values(memory);
  const std::vector<int32_t> workCount = {int32_t(work.size())};
  values.input("work", work);
  values.input("work_count", workCount);
  values.set("count_ahead", arguments.countAhead);
  values.set("policy_value", arguments.policyValue);
  values.set("max_rank", arguments.maxRank);
  const std::vector<int32_t> roomy(memory.rank.size(), INT32_MAX);
  values.input("row_capacity",
               arguments.rowCapacity.empty() ? roomy : arguments.rowCapacity);
  launch(compactKernel, values, workCount[0]);
}

std::vector<float> KernelLauncher::densify(LayerMemory &memory, int32_t state,
                                           int32_t countAhead) const {
  Values values(memory);
  FloatArray out(int64_t(memory.layer.dk) * memory.layer.dv);
  const std::vector<int32_t> work = {state}, workCount = {1};
  const std::vector<int64_t> outBase = {0};
  values.input("work", work);
  values.input("work_count", workCount);
  values.set("count_ahead", countAhead);
  values.changed("out", out);
  values.input("out_base", outBase);
  launch(densifyKernel, values, 1);
  return out.copy();
}

std::vector<float> KernelLauncher::decode(LayerMemory &memory,
                                          const DecodeArguments &arguments,
                                          int64_t programsAtOnce) const {
  const reference::LayerSpec &layer = memory.layer;
  const int64_t batch = int64_t(arguments.slots.size());
  Values values(memory);
  std::map<std::string, FloatArray> inputs;
  auto input = [&](const std::string &name, const std::vector<float> &rows) {
    FloatArray &array =
        inputs.emplace(name, int64_t(rows.size())).first->second;
    std::copy(rows.begin(), rows.end(), array.data());
    values.input(name, array);
    values.set(name + "_stride", int64_t(rows.size()) / batch);
  };
  input("q", arguments.q);
  input("k", arguments.k);
  input("v", arguments.v);
  input("gate", arguments.gate);
  if (layer.hasBeta())
    input("beta", arguments.beta);
  input("a_log", arguments.aLog);
  input("dt_bias", arguments.dtBias);
  FloatArray y(batch * layer.valueFloats());
  values.changed("y", y);
  values.set("y_stride", layer.valueFloats());
  values.input("slots", arguments.slots);
  const bool ordered = !arguments.order.empty();
  const std::vector<int32_t> unused = {0};
  values.input("order", ordered ? arguments.order : unused);
  values.set("ordered", int32_t(ordered));
  launch(decodeKernel, values, batch * layer.heads, programsAtOnce);
  return y.copy();
}

} // namespace sinkstate::conformance
