//===- ConvertedTwins.cpp - Requests in other types and in f32 ------------===//

#include "ConvertedTwins.h"

#include "LayerMath.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::conformance {
namespace {

/// Of |H|_F |q|, as for runs in f32.
constexpr double kTolerance = 5e-5;

/// Its compactions drop nothing, and nothing is stored in fewer bits.
bool isExact(const LayerSpec &layer) {
  return layer.storage == "f32" && (layer.denseForm || layer.policyValue == 0);
}

std::vector<int> withoutPadding(std::vector<int> order) {
  std::erase(order, -1);
  return order;
}

} // namespace

ss_engine_options twinOptions(int32_t requests, int32_t rows) {
  ss_engine_options options = plainOptions(2 * requests + 1);
  options.reserved_slots = 1;
  options.max_batch = rows;
  return options;
}

Twins::Twins(Running &run, int32_t count, int32_t tokens)
    : run(run), tokens(tokens), requests(size_t(count)) {
  for (Request &request : requests) {
    request.typedSlot = run.engine.allocateSlot();
    request.plainSlot = run.engine.allocateSlot();
  }
  restart();
}

void Twins::restart() {
  for (Request &request : requests) {
    run.engine.resetSlot(request.typedSlot);
    run.engine.resetSlot(request.plainSlot);
    request.driven = std::make_unique<DrivenRequest>(run.layers, ++seed);
  }
}

void Twins::fill(const RowForm &form, TypedBatch &typed, TypedBatch &plain,
                 const std::vector<int> &order, size_t layer) {
  std::vector<TokenValues> typedRows, plainRows;
  for (int which : order)
    for (int32_t token = 0; token < tokens; ++token) {
      typedRows.emplace_back();
      if (which < 0)
        continue;
      DrivenRequest &request = *requests[size_t(which)].driven;
      typedRows.back() =
          request.inputs(layer).token(request.position + token);
      plainRows.push_back(roundedTo(form, typedRows.back()));
    }
  typed.fill(layer, typedRows);
  plain.fill(layer, plainRows);
}

void Twins::step(const RowForm &form, TypedBatch &typed,
                 const std::vector<int> &order,
                 const std::function<void()> &submit) {
  const std::vector<int> decoded = withoutPadding(order);
  TypedBatch plain(run.engine, run.layers, RowForm(), int32_t(decoded.size()),
                   tokens);
  std::vector<int32_t> typedSlots, plainSlots;
  for (int which : order)
    typedSlots.push_back(which < 0 ? -1 : requests[size_t(which)].typedSlot);
  for (int which : decoded)
    plainSlots.push_back(requests[size_t(which)].plainSlot);
  typed.setSlots(typedSlots);
  plain.setSlots(plainSlots);
  for (size_t layer = 0; layer < run.layers.size(); ++layer)
    fill(form, typed, plain, order, layer);
  submit();
  plain.enqueue();
  run.engine.synchronize();
  for (size_t layer = 0; layer < run.layers.size(); ++layer)
    compareLayer(form, typed, plain, order, layer);
  for (int which : decoded)
    requests[size_t(which)].driven->position += tokens;
}

void Twins::compareLayer(const RowForm &form, const TypedBatch &typed,
                         const TypedBatch &plain, const std::vector<int> &order,
                         size_t layer) {
  const std::vector<float> found = typed.y(layer), exact = plain.y(layer);
  const std::vector<float> rounded = reference::roundedTo(form.yType, exact);
  const int64_t width = tokens * run.layers[layer].valueFloats();
  auto row = [&](const std::vector<float> &rows, int64_t number) {
    return std::vector<float>(rows.begin() + number * width,
                              rows.begin() + (number + 1) * width);
  };
  int64_t decoded = 0;
  for (size_t b = 0; b < order.size(); ++b) {
    if (order[b] < 0) {
      EXPECT_EQ(row(found, int64_t(b)), std::vector<float>(size_t(width)));
      continue;
    }
    EXPECT_EQ(row(found, int64_t(b)), row(rounded, decoded++))
        << "layer " << layer << " row " << b;
    if (isExact(run.layers[layer]))
      compareExact(form, requests[size_t(order[b])], layer,
                   found.data() + int64_t(b) * width);
  }
}

void Twins::compareExact(const RowForm &form, Request &request, size_t index,
                         const float *y) {
  const LayerSpec &layer = run.layers[index];
  const reference::LayerWeights &weights = run.driver.weights(index);
  reference::DenseRecurrence &exact = request.driven->exact(index);
  for (int32_t token = 0; token < tokens; ++token) {
    const TokenValues in = roundedTo(
        form, request.driven->inputs(index).token(request.driven->position +
                                                  token));
    const reference::Vector expected =
        exact.step(in.view(), weights.aLog.data(), weights.dtBias.data());
    for (int64_t head = 0; head < layer.heads; ++head) {
      const int64_t keyHead = head / (layer.heads / layer.keyHeads);
      double qSquares = 0, ySquares = 0, errorSquares = 0;
      for (double x : reference::normalized(
               layer, in.q.data() + keyHead * layer.dk, layer.queryScale))
        qSquares += x * x;
      for (int64_t r = head * layer.dv; r < (head + 1) * layer.dv; ++r) {
        const double found = y[token * layer.valueFloats() + r];
        ySquares += expected[size_t(r)] * expected[size_t(r)];
        errorSquares += (found - expected[size_t(r)]) *
                        (found - expected[size_t(r)]);
      }
      // Half a step of subnormal f16 beside.
      const double allowed =
          kTolerance * exact.frobeniusNorm(head) * std::sqrt(qSquares) +
          1.01 * reference::unitRoundoff(form.yType) * std::sqrt(ySquares) +
          0x1p-25 * std::sqrt(double(layer.dv));
      EXPECT_LE(std::sqrt(errorSquares), allowed)
          << "layer " << index << " head " << head << " token " << token;
    }
  }
}

void Twins::expectEqualStates() {
  for (const Request &request : requests)
    for (int32_t layer = 0; layer < run.engine.layerCount(); ++layer) {
      EXPECT_EQ(run.engine.ranks(layer, request.typedSlot),
                run.engine.ranks(layer, request.plainSlot));
      EXPECT_EQ(run.engine.status(layer, request.typedSlot),
                run.engine.status(layer, request.plainSlot));
      EXPECT_EQ(run.engine.densify(layer, request.typedSlot),
                run.engine.densify(layer, request.plainSlot));
    }
}

} // namespace sinkstate::conformance
