//===- HandOverUnderTest.h - One request, token by token --------*- C++ -*-===//
//
// The tests of this folder run twice: on the CPU's engine and, compiled with
// SS_ON_FAKE_GPU, on the engine for CUDA over the fake driver, whose memory is
// the host's. What one engine alone has is in files of its own.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_HANDOVERUNDERTEST_H
#define SINKSTATE_UNIT_HANDOVERUNDERTEST_H

#ifdef SS_ON_FAKE_GPU
#include "FakeGpuEngine.h"
#else
#include "EngineUnderTest.h"
#endif

namespace sinkstate::test {

/// Whether the engine under test consolidates where nobody asks for it.
#ifdef SS_ON_FAKE_GPU
inline constexpr bool kConsolidates = false;
#else
inline constexpr bool kConsolidates = true;
#endif

/// y of every layer of every token decoded: [layer][token * heads * dv].
using Outputs = std::vector<std::vector<float>>;

/// gdn, mamba2 and kda, staggered, with `draft` tokens each; eps as given.
std::vector<LayerSpec> threeLayers(int32_t draft, double eps = 1e-2);
/// The same without draft tokens; all but the first compact before their tokens.
std::vector<LayerSpec> mixedLayers(double eps = 1e-2);

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
