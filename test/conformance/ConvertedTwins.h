//===- ConvertedTwins.h - Requests in other types and in f32 ----*- C++ -*-===//
//
// Requests that one engine decodes twice: as a caller with arrays of other types,
// and in f32 with the numbers that those arrays hold. The states have the same
// bits, and every output is the other's, rounded.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONFORMANCE_CONVERTEDTWINS_H
#define SINKSTATE_CONFORMANCE_CONVERTEDTWINS_H

#include "ConformanceTest.h"
#include "TypedBatch.h"

#include <functional>

namespace sinkstate::conformance {

using reference::RowForm;
using reference::TypedBatch;

/// Options for twins of so many requests, with a null slot.
ss_engine_options twinOptions(int32_t requests, int32_t rows);

class Twins {
public:
  Twins(Running &run, int32_t requests, int32_t tokens);

  /// From here on all requests are fresh. Exact graphs stay exact for as many
  /// tokens as the smaller side of their smallest state.
  void restart();
  /// Rows of `typed` are these requests (-1: padding), each of which takes the
  /// next tokens. `submit` decodes them.
  void step(const RowForm &form, TypedBatch &typed,
            const std::vector<int> &order,
            const std::function<void()> &submit);
  void expectEqualStates();

private:
  struct Request {
    int32_t typedSlot, plainSlot;
    std::unique_ptr<DrivenRequest> driven;
  };
  void fill(const RowForm &form, TypedBatch &typed, TypedBatch &plain,
            const std::vector<int> &order, size_t layer);
  void compareLayer(const RowForm &form, const TypedBatch &typed,
                    const TypedBatch &plain, const std::vector<int> &order,
                    size_t layer);
  /// Of the tokens of one request in a layer that truncates nothing, to the recurrence in float64.
  void compareExact(const RowForm &form, Request &request, size_t layer,
                    const float *y);

  Running &run;
  int32_t tokens;
  std::vector<Request> requests;
  uint64_t seed = 0;
};

} // namespace sinkstate::conformance

#endif
