//===- Soak.cpp - Random traffic against a plain reference ----------------===//

#include "Soak.h"

#include "RandomRequest.h"
#include "ReferenceKernels.h"

#include "sinkstate/sinkstate.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

namespace sinkstate::soak {
namespace {

using namespace sinkstate::reference;

std::vector<LayerSpec> soakLayers() {
  std::vector<LayerSpec> layers = {gdnLayer(2, 1, 24, 32),
                                   mamba2Layer(2, 1, 32, 24),
                                   kdaLayer(1, 1, 32, 32)};
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = "layer" + std::to_string(i);
    layers[i].policyValue = i == 1 ? 1e-2 : 5e-2;
    layers[i].phase = int32_t(3 * i % 4);
    layers[i].active = layers[i].buffer = 4;
  }
  layers[2].before = true;
  layers.push_back(gdnLayer(1, 1, 8, 8));
  layers.back().name = "dense";
  layers.back().denseForm = true;
  return layers;
}

/// One layer's arrays of a batch.
struct Arrays {
  std::vector<float> q, k, v, gate, beta, y;

  void add(const TokenValues &token, size_t outputs) {
    auto append = [](std::vector<float> &to, const std::vector<float> &from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(q, token.q);
    append(k, token.k);
    append(v, token.v);
    append(gate, token.gate);
    append(beta, token.beta);
    y.insert(y.end(), outputs, 42.0f);
  }

  void spoil(size_t row, size_t rows) {
    for (std::vector<float> *values : {&q, &k, &v, &gate, &beta}) {
      const size_t width = values->size() / rows;
      std::fill_n(values->begin() + int64_t(row * width), width,
                  std::numeric_limits<float>::quiet_NaN());
    }
  }

  ss_decode_args args(const std::vector<int32_t> &slots,
                      const LayerWeights &weights) {
    ss_decode_args args = decodeArgs();
    args.batch = int32_t(slots.size());
    args.slots = slots.data();
    args.q = {q.data(), 0};
    args.k = {k.data(), 0};
    args.v = {v.data(), 0};
    args.gate = {gate.data(), 0};
    args.beta = {beta.empty() ? nullptr : beta.data(), 0};
    args.a_log = weights.aLog.data();
    args.dt_bias = weights.dtBias.data();
    args.y = y.data();
    return args;
  }
};

ss_engine_options engineOptionsFor(const SoakOptions &options, bool alone) {
  ss_engine_options result = engineOptions();
  result.slots = alone ? 1 : options.slots;
  result.threads = alone ? 1 : 2;
  result.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
  result.consolidation_threads = alone ? 1 : 2;
  result.consolidate_every = 2;
  return result;
}

struct Request {
  int32_t slot = -1;
  int64_t position = 0, tokens = 0;
  std::vector<RandomRequest> inputs; ///< per layer
  std::unique_ptr<Engine> alone;
};

class Soak {
public:
  explicit Soak(const SoakOptions &options)
      : options(options), random(options.seed), kernels(soakLayers()),
        package(Package::fromMemory(kernels.manifest(), &KernelSet::lookup,
                                    &kernels)),
        engine(package, shared()) {
    for (size_t i = 0; i < kernels.layers().size(); ++i)
      weights.push_back(randomWeights(kernels.layers()[i], i));
    result.startBytes = engine.statistics().allocated_bytes;
  }

  SoakResult run() {
    for (int64_t step = 0; step < options.steps && result.failure.empty();
         ++step) {
      turnOver();
      oneStep();
      if (options.progress && step % 5000 == 4999)
        std::fprintf(stderr, "%lld steps\n", static_cast<long long>(step + 1));
    }
    while (!requests.empty() && result.failure.empty())
      leave(requests.size() - 1);
    const ss_statistics s = engine.statistics();
    result.endBytes = s.allocated_bytes;
    result.peakBytes = s.allocated_peak;
    result.refused = s.refused;
    result.landed = s.consolidations_landed;
    result.dropped = s.consolidations_dropped;
    result.waits = s.consolidation_waits;
    result.folds = s.folds;
    if (result.failure.empty() && result.endBytes != result.startBytes)
      failWith("the engine holds ", result.endBytes,
               " bytes at the end, expected the ", result.startBytes,
               " of the start");
    return result;
  }

private:
  ss_engine_options shared() const {
    ss_engine_options result = engineOptionsFor(options, false);
    if (options.pressure) {
      // Enough for some requests at a time, not for all.
      const ss_memory_plan plan = package.plan(result);
      ss_engine_options one = result;
      one.slots = 1;
      result.state_bytes_limit =
          plan.expected - package.plan(one).expected;
    }
    return result;
  }

  int32_t dice(int32_t sides) {
    return std::uniform_int_distribution<int32_t>(0, sides - 1)(random);
  }
  template <typename... Parts> void failWith(const Parts &...parts) {
    std::ostringstream line;
    (line << ... << parts);
    result.failure = line.str();
  }

  void turnOver() {
    if (int32_t(requests.size()) < options.slots && dice(6) == 0)
      join();
    for (size_t i = requests.size(); i-- > 0;)
      if (requests[i]->position >= requests[i]->tokens || dice(400) == 0)
        leave(i);
    std::shuffle(requests.begin(), requests.end(), random);
  }

  void join() {
    auto request = std::make_unique<Request>();
    request->slot = engine.allocateSlot();
    request->tokens = 1 + dice(dice(4) == 0 ? 600 : 60);
    const uint64_t seed = random();
    RequestStyle style;
    if (dice(3) == 0)
      style = {2, 0, 1.0}; // little is kept: ranks stay low
    for (const LayerSpec &layer : kernels.layers())
      request->inputs.emplace_back(layer, seed + request->inputs.size(), style);
    request->alone =
        std::make_unique<Engine>(package, engineOptionsFor(options, true));
    (void)request->alone->allocateSlot();
    requests.push_back(std::move(request));
    ++result.joined;
  }

  void leave(size_t index) {
    Request &request = *requests[index];
    for (size_t layer = 0; layer < kernels.layers().size(); ++layer)
      if (engine.densify(int32_t(layer), request.slot) !=
              request.alone->densify(int32_t(layer), 0) ||
          engine.ranks(int32_t(layer), request.slot) !=
              request.alone->ranks(int32_t(layer), 0))
        failWith("a request of ", request.position, " tokens left layer ",
                 layer, " in another state than alone");
    engine.freeSlot(request.slot);
    requests.erase(requests.begin() + int64_t(index));
    ++result.left;
  }

  /// The most recent request gives its memory back.
  void evict() {
    auto youngest = std::min_element(
        requests.begin(), requests.end(), [](const auto &a, const auto &b) {
          return a->position < b->position;
        });
    engine.freeSlot((*youngest)->slot);
    requests.erase(youngest);
    ++result.evicted;
  }

  /// A step of those that do not pause, with rows of padding between them.
  void oneStep() {
    std::vector<Request *> rows;
    for (const auto &request : requests)
      if (dice(5) != 0)
        rows.push_back(request.get());
    for (int32_t pads = dice(3); pads > 0 && !rows.empty(); --pads) {
      rows.insert(rows.begin() + dice(int32_t(rows.size()) + 1), nullptr);
      ++result.padding;
    }
    if (rows.empty())
      return;
    std::vector<int32_t> slots;
    for (const Request *request : rows)
      slots.push_back(request ? request->slot : -1 - dice(3));
    for (size_t layer = 0; layer < kernels.layers().size(); ++layer) {
      Arrays arrays = arraysOf(layer, rows);
      if (!decode(layer, arrays, slots))
        return givenUp(rows, slots, layer);
      compare(layer, arrays, rows);
    }
    engine.endStep(slots);
    for (Request *request : rows)
      if (request) {
        request->alone->endStep({0});
        ++request->position;
        ++result.tokens;
      }
  }

  Arrays arraysOf(size_t layer, const std::vector<Request *> &rows) {
    const LayerSpec &spec = kernels.layers()[layer];
    const Request *some =
        *std::find_if(rows.begin(), rows.end(), [](Request *r) { return r; });
    Arrays arrays;
    for (const Request *request : rows) {
      const Request *source = request ? request : some;
      arrays.add(source->inputs[layer].token(source->position),
                 size_t(spec.valueFloats()));
    }
    for (size_t row = 0; row < rows.size(); ++row)
      if (!rows[row])
        arrays.spoil(row, rows.size());
    return arrays;
  }

  /// False: there is no memory, and nothing has changed.
  bool decode(size_t layer, Arrays &arrays, const std::vector<int32_t> &slots) {
    try {
      engine.decodeLayer(int32_t(layer), arrays.args(slots, weights[layer]));
      return true;
    } catch (const Exception &error) {
      if (error.code() != SS_OUT_OF_MEMORY || !options.pressure)
        failWith("decoding: ", error.what());
      return false;
    }
  }

  /// The step is given up: its requests are evicted, from the youngest on, as
  /// many as have begun it.
  void givenUp(const std::vector<Request *> &rows,
               const std::vector<int32_t> &, size_t layer) {
    if (!result.failure.empty())
      return;
    if (layer == 0) {
      evict();
      return;
    }
    for (const Request *request : rows) {
      if (!request)
        continue;
      engine.freeSlot(request->slot);
      std::erase_if(requests,
                    [&](const auto &r) { return r.get() == request; });
      ++result.evicted;
    }
  }

  void compare(size_t layer, const Arrays &arrays,
               const std::vector<Request *> &rows) {
    const size_t width = size_t(kernels.layers()[layer].valueFloats());
    for (size_t row = 0; row < rows.size(); ++row) {
      std::vector<float> expected(width, 0.0f);
      if (rows[row]) {
        Arrays one = arraysOf(layer, {rows[row]});
        const std::vector<int32_t> slot = {0};
        rows[row]->alone->decodeLayer(int32_t(layer),
                                      one.args(slot, weights[layer]));
        expected = one.y;
      }
      if (!std::equal(expected.begin(), expected.end(),
                      arrays.y.begin() + int64_t(row * width)))
        failWith("layer ", layer, ", row ", row, " of ", rows.size(),
                 rows[row] ? ": another y than alone" : ": padding is not zero",
                 ", position ", rows[row] ? rows[row]->position : -1);
    }
  }

  SoakOptions options;
  std::mt19937_64 random;
  KernelSet kernels;
  Package package;
  Engine engine;
  std::vector<LayerWeights> weights;
  std::vector<std::unique_ptr<Request>> requests;
  SoakResult result;
};

} // namespace

SoakResult runSoak(const SoakOptions &options) { return Soak(options).run(); }

std::string describe(const SoakResult &r) {
  std::ostringstream text;
  text << r.tokens << " tokens, " << r.joined << " joined, " << r.left
       << " left, " << r.evicted << " evicted, " << r.padding
       << " rows of padding; " << r.refused << " calls refused; SVDs " << r.landed
       << " landed, " << r.dropped << " dropped, " << r.waits << " waits; "
       << r.folds << " dense folds; bytes " << r.startBytes << " at the start, "
       << r.peakBytes << " at most, " << r.endBytes << " at the end";
  return text.str();
}

} // namespace sinkstate::soak
