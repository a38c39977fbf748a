//===- NamedTwiceTest.cpp - Batches that name a slot twice, fake GPU ------===//
//
// The first row decodes, the others are padding, and a synchronization says so:
// states and outputs are those of a twin whose batch has padding there. Whatever
// the slots' type, the tokens of a call and the order of programs, and in graphs.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"
#include "TypedBatch.h"

#include <optional>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Every form and every time of compaction.
std::vector<LayerSpec> fourLayers() {
  std::vector<LayerSpec> layers = {
      gdnLayer(4, 2, 24, 16), mamba2Layer(2, 1, 16, 24),
      kdaLayer(2, 2, 16, 16), gdnLayer(2, 2, 8, 8)};
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = "layer" + std::to_string(i);
    layers[i].index = int32_t(i);
    layers[i].active = 2;
    layers[i].buffer = 4;
    layers[i].phase = int32_t(i);
    layers[i].policyValue = 1e-2;
  }
  layers[1].before = true;
  layers[3].denseForm = true;
  return layers;
}

constexpr RowForm kPlain = {};
constexpr RowForm kWide = {SS_ELEMENT_F32, SS_ELEMENT_F32, SS_ELEMENT_F32,
                           SS_SLOT_I64,    SS_PADDING_NEGATIVE, 0};
constexpr RowForm kHalves = {SS_ELEMENT_BF16, SS_ELEMENT_BF16, SS_ELEMENT_BF16,
                             SS_SLOT_I32,     SS_PADDING_NEGATIVE, 0};

struct Case {
  RowForm form;
  int32_t tokens, streams;
  bool ordered, captured;
};

/// Two requests in a batch whose last row is what is asked.
class Batches {
public:
  Batches(FakePackage &source, const Case &given)
      : layers(source.layers()), given(given), rows(given.ordered ? 9 : 3),
        cuda(source, options(), false),
        batch(cuda.engine, layers, given.form, rows, given.tokens) {
    for (uint64_t seed : {1, 2}) {
      slots.push_back(cuda.engine.allocateSlot());
      requests.emplace_back(layers, seed, lowRankStyle());
    }
  }
  ss_engine_options options() const {
    ss_engine_options options;
    ss_engine_options_init(&options);
    options.device = SS_DEVICE_CUDA;
    options.slots = 9;
    options.max_batch = 9 * 3;
    options.compaction_streams = given.streams;
    return options;
  }
  /// `again`: the last row names the first request, too.
  void step(bool again) {
    std::vector<int32_t> named(size_t(rows), -1);
    named[0] = slots[0], named[1] = slots[1];
    if (again)
      named.back() = slots[0];
    batch.setSlots(named);
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      std::vector<TokenValues> values(size_t(rows * given.tokens));
      for (int32_t t = 0; t < given.tokens; ++t) {
        for (size_t row : {0, 1})
          values[row * size_t(given.tokens) + size_t(t)] =
              requests[row].inputs(layer).token(position + t);
        values[values.size() - size_t(given.tokens - t)] =
            requests[1].inputs(layer).token(1000 + position + t);
      }
      batch.fill(layer, values);
    }
    position += given.tokens;
    if (!given.captured)
      return batch.enqueue();
    if (!graph)
      graph.emplace([&](void *stream) { batch.enqueue(stream); });
    cuda.engine.tend();
    graph->replay();
  }
  std::vector<std::vector<float>> seen() {
    std::vector<std::vector<float>> all;
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      all.push_back(batch.y(layer));
      for (int32_t slot : slots)
        all.push_back(cuda.engine.densify(int32_t(layer), slot));
    }
    for (int32_t slot : slots)
      all.push_back({float(cuda.engine.position(slot))});
    all.push_back({float(cuda.engine.statistics().compactions)});
    return all;
  }

  const std::vector<LayerSpec> layers;
  const Case given;
  const int32_t rows;
  CudaUnderTest cuda;
  TypedBatch batch;
  std::vector<int32_t> slots;
  std::vector<DrivenRequest> requests;
  std::optional<CapturedCalls> graph;
  int64_t position = 0;
};

void expectReported(Engine &engine) {
  EXPECT_EQ(ss_engine_synchronize(engine.get(), nullptr), SS_INVALID_ARGUMENT);
  EXPECT_STREQ(ss_last_error(),
               "a batch named a slot twice, expected every slot once: the rows "
               "after the first were padding");
  EXPECT_EQ(ss_engine_synchronize(engine.get(), nullptr), SS_OK);
}

class SlotsNamedTwice : public OnFakeGpu,
                        public testing::WithParamInterface<Case> {
protected:
  FakePackage source{fourLayers()};
};

TEST_P(SlotsNamedTwice, AreTheFirstRowsAndReported) {
  Batches twice(source, GetParam()), once(source, GetParam());
  for (int step = 0; step < 11; ++step) {
    const bool again = step % 3 != 1;
    twice.step(again);
    once.step(false);
    if (again)
      expectReported(twice.cuda.engine);
    else
      EXPECT_EQ(ss_engine_synchronize(twice.cuda.engine.get(), nullptr), SS_OK);
    ASSERT_EQ(twice.seen(), once.seen()) << step;
  }
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (const RowForm &form : {kPlain, kWide, kHalves})
    for (int32_t tokens : {1, 3})
      for (int32_t streams : {0, -1})
        for (bool ordered : {false, true})
          for (bool captured : {false, true})
            cases.push_back({form, tokens, streams, ordered, captured});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Batches, SlotsNamedTwice, testing::ValuesIn(allCases()));

class ArraysNamedTwice : public OnFakeGpu {
protected:
  FakePackage source{fourLayers()};
};

TEST_F(SlotsNamedTwice, InAnArrayOfALayersOwn) {
  Batches twice(source, {kPlain, 1, 0, false, false}),
      once(source, {kPlain, 1, 0, false, false});
  for (Batches *run : {&twice, &once})
    for (int step = 0; step < 9; ++step) {
      run->step(false);
      run->batch.setSlots({run->slots[0], run->slots[1],
                           run == &twice ? run->slots[1] : -1});
      DeviceArray<int32_t> other(run->cuda.engine, 3);
      other.copyIn({run->slots[0], run->slots[1],
                    run == &twice ? run->slots[0] : -1});
      run->cuda.engine.beginStepRows(run->batch.rows());
      for (size_t layer = 0; layer < run->layers.size(); ++layer) {
        ss_decode_args args = run->batch.args(layer);
        if (layer % 2 == 0)
          args.slots = other.data();
        run->cuda.engine.decodeLayer(int32_t(layer), args);
      }
      run->cuda.engine.endStep(other.data(), 3);
    }
  expectReported(twice.cuda.engine);
  EXPECT_EQ(ss_engine_synchronize(once.cuda.engine.get(), nullptr), SS_OK);
  EXPECT_EQ(twice.seen(), once.seen());
}

} // namespace
