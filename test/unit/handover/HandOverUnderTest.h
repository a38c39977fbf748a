//===- HandOverUnderTest.h - One request, token by token --------*- C++ -*-===//
#ifndef SINKSTATE_UNIT_HANDOVERUNDERTEST_H
#define SINKSTATE_UNIT_HANDOVERUNDERTEST_H

#include "EngineUnderTest.h"

namespace sinkstate::test {

/// y of every layer of every token decoded: [layer][token * heads * dv].
using Outputs = std::vector<std::vector<float>>;

/// gdn, mamba2 and kda, staggered, with `draft` tokens each; eps as given.
std::vector<LayerSpec> threeLayers(int32_t draft, double eps = 1e-2);

/// Decodes tokens [from, from + tokens) of a random request in one call per
/// layer, ss_end_step included. `single`: by steps of one token.
Outputs decode(EngineUnderTest &test, int32_t slot, uint64_t seed,
               int64_t from, int32_t tokens, bool single = false);

/// Everything that can be seen of a slot: ranks, status and H of every layer.
struct Seen {
  int64_t position;
  std::vector<std::vector<int32_t>> ranks, status;
  std::vector<std::vector<float>> states;
  bool operator==(const Seen &) const = default;
};
Seen look(EngineUnderTest &test, int32_t slot);

} // namespace sinkstate::test

#endif
