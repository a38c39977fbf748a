//===- StepTokensTest.cpp - How the layers of a step say their tokens -----===//
//
// All layers of a step take the same tokens, whichever call says so: one token of
// each row can be asked for in four ways.
//
//===----------------------------------------------------------------------===//

#include "HandOverUnderTest.h"

#include <gtest/gtest.h>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

constexpr int32_t kRows = 2, kTokens = 3;

/// A call for one token of each row.
enum Way { kLayer, kTokensAll, kTokensOfRows, kTokensOfFew, kWays };

/// [kRows, kTokens, width], of which the first token of a row is wanted.
struct Arrays {
  Arrays(const LayerSpec &layer, size_t index, int64_t position)
      : y(size_t(kRows * kTokens * layer.valueFloats()), 7.0f) {
    for (int32_t row = 0; row < kRows; ++row) {
      const RandomRequest request(layer, uint64_t(row) * 31 + index);
      for (int32_t token = 0; token < kTokens; ++token) {
        const TokenValues values = request.token(position + token);
        for (auto [to, from] : {std::pair(&q, &values.q), {&k, &values.k},
                                {&v, &values.v}, {&gate, &values.gate},
                                {&beta, &values.beta}})
          to->insert(to->end(), from->begin(), from->end());
      }
    }
  }
  std::vector<float> q, k, v, gate, beta, y;
};

class OneTokenSteps : public testing::Test {
protected:
  /// Some layers compact before their tokens, with draft tokens and without.
  static std::vector<LayerSpec> layers(int32_t draft) {
    std::vector<LayerSpec> layers =
        draft < 0 ? mixedLayers() : threeLayers(draft);
    for (LayerSpec &layer : layers)
      layer.active = 16;
    return layers;
  }

  struct Run {
    explicit Run(int32_t draft)
        : test(layers(draft), optionsFor(kRows), false),
          slots{test.engine.allocateSlot(), test.engine.allocateSlot()} {}
    ss_decode_args args(size_t layer, Arrays &arrays) {
      const LayerSpec &spec = test.kernels.layers()[layer];
      ss_decode_args args = decodeArgs();
      args.batch = kRows;
      args.slots = slots;
      args.q = {arrays.q.data(), kTokens * spec.keyFloats()};
      args.k = {arrays.k.data(), kTokens * spec.keyFloats()};
      args.v = {arrays.v.data(), kTokens * spec.valueFloats()};
      args.gate = {arrays.gate.data(), kTokens * spec.gateFloats()};
      if (spec.hasBeta())
        args.beta = {arrays.beta.data(), kTokens * spec.heads};
      args.a_log = test.driver.weights(layer).aLog.data();
      args.dt_bias = test.driver.weights(layer).dtBias.data();
      args.y = arrays.y.data();
      args.y_stride = kTokens * spec.valueFloats();
      return args;
    }
    void decode(Way way, size_t layer, Arrays &arrays) {
      const int32_t ones[kRows] = {1, 1};
      ss_token_args tokens = {};
      tokens.struct_size = sizeof tokens;
      tokens.tokens = way == kTokensOfFew ? kTokens : 1;
      tokens.row_tokens = way == kTokensAll ? nullptr : ones;
      if (way == kLayer)
        test.engine.decodeLayer(int32_t(layer), args(layer, arrays));
      else
        test.engine.decodeTokens(int32_t(layer), args(layer, arrays), tokens);
      (void)test.engine.position(slots[0]); // waits
      // What the rows do not have became 0.
      for (size_t row = 0; way == kTokensOfFew && row < kRows; ++row) {
        const size_t width = arrays.y.size() / (kRows * kTokens);
        for (size_t i = width; i < kTokens * width; ++i)
          EXPECT_EQ(std::exchange(arrays.y[row * kTokens * width + i], 7.0f), 0);
      }
    }
    EngineUnderTest test;
    int32_t slots[kRows];
  };
};

// To the bit, in every order of the four.
TEST_F(OneTokenSteps, AreTheSameWhateverTheLayersCall) {
  for (int32_t draft : {-1, 0, 2}) {
    Run ways(draft), plain(draft);
    for (int step = 0; step < kWays * kWays * kWays; ++step) {
      const int way[3] = {step % kWays, step / kWays % kWays,
                          step / kWays / kWays};
      for (Run *run : {&ways, &plain})
        run->test.engine.beginStep(run->slots, kRows);
      for (size_t layer = 0; layer < 3; ++layer) {
        const LayerSpec &spec = ways.test.kernels.layers()[layer];
        Arrays a(spec, layer, step), b(spec, layer, step);
        ways.decode(Way(way[layer]), layer, a);
        plain.decode(kLayer, layer, b);
        ASSERT_EQ(a.y, b.y) << "layer " << layer << " of step " << step;
      }
      for (Run *run : {&ways, &plain})
        run->test.engine.endStep(run->slots, kRows);
    }
    for (size_t row = 0; row < kRows; ++row)
      EXPECT_EQ(look(ways.test, ways.slots[row]),
                look(plain.test, plain.slots[row]));
  }
}

// Other tokens are no such step's, and the call that is right can follow.
TEST_F(OneTokenSteps, TakeNoOtherTokens) {
  for (int first = 0; first < kWays; ++first) {
    Run run(0);
    run.test.engine.beginStep(run.slots, kRows);
    std::vector<Arrays> arrays;
    for (size_t layer = 0; layer < 3; ++layer)
      arrays.emplace_back(run.test.kernels.layers()[layer], layer, 0);
    run.decode(Way(first), 0, arrays[0]);
    const int32_t others[kRows] = {1, 2};
    for (const int32_t *rows : {static_cast<const int32_t *>(nullptr), others}) {
      ss_token_args tokens = {};
      tokens.struct_size = sizeof tokens;
      tokens.tokens = 2;
      tokens.row_tokens = rows;
      const ss_decode_args args = run.args(1, arrays[1]);
      EXPECT_EQ(ss_decode_layer_tokens(run.test.engine.get(), 1, &args, &tokens),
                SS_INVALID_ARGUMENT);
    }
    for (size_t layer : {1, 2})
      run.decode(Way((first + int(layer)) % kWays), layer, arrays[layer]);
    run.test.engine.endStep(run.slots, kRows);
    EXPECT_EQ(run.test.engine.position(run.slots[1]), 1);
  }
}

} // namespace
