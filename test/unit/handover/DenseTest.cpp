//===- DenseTest.cpp - Dense states in and out, and forks -----------------===//

#include "HandOverUnderTest.h"

#include "numeric/Elements.h"

#include "sinkstate/routines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

ss_dense_layout layoutOf(int32_t type = SS_ELEMENT_F32) {
  ss_dense_layout layout = {};
  layout.struct_size = sizeof layout;
  layout.type = type;
  return layout;
}

ss_result initialise(EngineUnderTest &test, int32_t layer, int32_t slot,
                     const std::vector<float> &dense, float eps,
                     uint64_t seed = 0) {
  const ss_dense_layout layout = layoutOf();
  ss_init_options options = {};
  options.struct_size = sizeof options;
  options.eps = eps;
  options.seed = seed;
  return ss_state_init(test.engine.get(), layer, &slot, nullptr, 1,
                       dense.data(), &layout, &options, nullptr);
}

double norm(const std::vector<float> &values) {
  double squares = 0;
  for (float value : values)
    squares += double(value) * value;
  return std::sqrt(squares);
}

double distance(const std::vector<float> &a, const std::vector<float> &b) {
  std::vector<float> difference(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    difference[i] = a[i] - b[i];
  return norm(difference);
}

std::vector<float> randomMatrix(int64_t dv, int64_t dk, int32_t rank,
                                uint64_t seed, double scale = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> gauss;
  std::vector<double> sum(size_t(dv * dk));
  for (int32_t r = 0; r < rank; ++r) {
    std::vector<double> u(static_cast<size_t>(dv)), v(static_cast<size_t>(dk));
    for (double &x : u)
      x = gauss(random);
    for (double &x : v)
      x = gauss(random);
    for (int64_t i = 0; i < dv * dk; ++i)
      sum[size_t(i)] += u[size_t(i / dk)] * v[size_t(i % dk)];
  }
  std::vector<float> matrix;
  for (double x : sum)
    matrix.push_back(float(x * scale));
  return matrix;
}

// Every layout, every type, in any place; other elements are not touched.
TEST(DensifyTo, WritesAnyLayoutAndNothingElse) {
  EngineUnderTest test(threeLayers(0), optionsFor(3));
  (void)test.engine.allocateSlot();
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 3, 0, 21, true);
  const Seen before = look(test, slot);
  for (int32_t layer = 0; layer < 3; ++layer) {
    const LayerSpec &spec = test.kernels.layers()[size_t(layer)];
    const std::vector<float> expected = test.engine.densify(layer, slot);
    ss_dense_layout layout = layoutOf();
    layout.dv_stride = 1; // [.., dk, dv] with gaps
    layout.dk_stride = spec.dv + 3;
    layout.head_stride = layout.dk_stride * spec.dk + 5;
    layout.slot_stride = layout.head_stride * spec.heads + 7;
    std::vector<float> out(size_t(3 * layout.slot_stride), -77.0f);
    const int32_t place = 2;
    check(ss_state_densify_to(test.engine.get(), layer, &slot, &place, 1,
                              out.data(), &layout, nullptr));
    size_t written = 0;
    for (float value : out)
      written += value != -77.0f;
    EXPECT_LE(written, expected.size());
    for (int64_t head = 0; head < spec.heads; ++head)
      for (int64_t v = 0; v < spec.dv; ++v)
        for (int64_t k = 0; k < spec.dk; ++k)
          ASSERT_EQ(out[size_t(2 * layout.slot_stride +
                               head * layout.head_stride + v +
                               k * layout.dk_stride)],
                    expected[size_t((head * spec.dv + v) * spec.dk + k)]);
    for (int32_t type : {SS_ELEMENT_F16, SS_ELEMENT_BF16}) {
      layout = layoutOf(type);
      std::vector<uint16_t> halves(expected.size());
      check(ss_state_densify_to(test.engine.get(), layer, &slot, nullptr, 1,
                                halves.data(), &layout, nullptr));
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(halves[i], type == SS_ELEMENT_F16
                                 ? numeric::F16::narrow(expected[i])
                                 : numeric::BF16::narrow(expected[i]));
    }
  }
  EXPECT_EQ(look(test, slot), before);
}

TEST(DensifyTo, OverlappingLayoutsAreRefused) {
  EngineUnderTest test({gdnLayer(2, 2, 8, 8)});
  const int32_t slot = test.engine.allocateSlot();
  std::vector<float> out(1024);
  auto result = [&](ss_dense_layout layout) {
    return ss_state_densify_to(test.engine.get(), 0, &slot, nullptr, 1,
                               out.data(), &layout, nullptr);
  };
  ss_dense_layout layout = layoutOf(3);
  EXPECT_EQ(result(layout), SS_INVALID_ARGUMENT);
  layout = layoutOf();
  layout.dk_stride = 1, layout.dv_stride = 7, layout.head_stride = 64;
  layout.slot_stride = 128;
  EXPECT_EQ(result(layout), SS_INVALID_ARGUMENT);
  layout.dv_stride = 8, layout.head_stride = 63;
  EXPECT_EQ(result(layout), SS_INVALID_ARGUMENT);
  layout.head_stride = 64, layout.slot_stride = 127;
  EXPECT_EQ(result(layout), SS_INVALID_ARGUMENT);
  layout.slot_stride = 128;
  EXPECT_EQ(result(layout), SS_OK);
}

// densify(init(H)) is H up to what was dropped, whatever the rank and scale.
TEST(Init, DensifyGivesTheMatrixBack) {
  LayerSpec layer = gdnLayer(1, 1, 24, 32);
  layer.policyValue = 3e-3;
  EngineUnderTest test({layer});
  const int32_t slot = test.engine.allocateSlot();
  for (int32_t rank : {0, 1, 2, 5, 11, 24})
    for (double scale : {1.0, 1e-30, 1e30}) {
      const auto matrix = randomMatrix(24, 32, rank, uint64_t(rank), scale);
      ASSERT_EQ(initialise(test, 0, slot, matrix, -1), SS_OK);
      // Dropped weights: at most 23 of 3e-3 of the largest.
      EXPECT_LE(distance(test.engine.densify(0, slot), matrix),
                23 * 3e-3 * norm(matrix));
      const int32_t stored = test.engine.ranks(0, slot)[0];
      // 24 * 32 / 57: from 14 components on it is smaller dense.
      if (rank == 24)
        EXPECT_EQ(stored, -1);
      else
        EXPECT_LE(stored, rank) << scale;
      if (rank == 1)
        EXPECT_EQ(stored, 1);
      EXPECT_EQ(test.engine.status(0, slot)[0], 0);
    }
}

TEST(Init, ANaNStaysInItsOwnState) {
  EngineUnderTest test({gdnLayer(2, 2, 16, 16)}, optionsFor(2));
  const int32_t a = test.engine.allocateSlot(), b = test.engine.allocateSlot();
  std::vector<float> dense = randomMatrix(16, 16, 3, 1);
  std::vector<float> all;
  for (int i = 0; i < 4; ++i)
    all.insert(all.end(), dense.begin(), dense.end());
  all[256 + 7] = NAN; // head 1 of the first slot
  const ss_dense_layout layout = layoutOf();
  const std::vector<int32_t> slots = {a, b};
  check(ss_state_init(test.engine.get(), 0, slots.data(), nullptr, 2,
                      all.data(), &layout, nullptr, nullptr));
  EXPECT_EQ(test.engine.status(0, a),
            (std::vector<int32_t>{0, SS_STATUS_NOT_FINITE}));
  EXPECT_EQ(test.engine.status(0, b), (std::vector<int32_t>{0, 0}));
  const auto first = test.engine.densify(0, a);
  EXPECT_LE(distance({first.begin(), first.begin() + 256}, dense), 1e-4);
  EXPECT_TRUE(std::isnan(first[300]));
}

// The bits depend on the matrix alone: not on the batch, the slot, the place.
TEST(Init, DoesNotDependOnTheBatch) {
  LayerSpec layer = gdnLayer(1, 1, 16, 24);
  EngineUnderTest alone({layer}), batch({layer}, optionsFor(8));
  const int32_t slot = alone.engine.allocateSlot();
  std::vector<float> all;
  std::vector<int32_t> slots, places;
  for (int32_t i = 0; i < 8; ++i) {
    const auto matrix = randomMatrix(16, 24, 4, uint64_t(100 + i));
    all.insert(all.end(), matrix.begin(), matrix.end());
    slots.push_back(batch.engine.allocateSlot());
    places.push_back(7 - i);
  }
  const ss_dense_layout layout = layoutOf();
  check(ss_state_init(batch.engine.get(), 0, slots.data(), places.data(), 8,
                      all.data(), &layout, nullptr, nullptr));
  for (int32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(initialise(alone, 0, slot,
                         randomMatrix(16, 24, 4, uint64_t(100 + 7 - i)), -1),
              SS_OK);
    EXPECT_EQ(batch.engine.snapshot(slots[size_t(i)]),
              alone.engine.snapshot(slot));
  }
}

// A prefill in the dense recurrence, handed over in the middle of a request,
// continues as the request does: chunk by chunk, reading one slot and writing
// another.
TEST(Init, AChunkedPrefillContinues) {
  const auto layers = threeLayers(0, 1e-5);
  EngineUnderTest whole(layers), chunked(layers, optionsFor(2));
  const int32_t a = whole.engine.allocateSlot();
  (void)decode(whole, a, 9, 0, 30, true);
  const int32_t b = chunked.engine.allocateSlot();
  const int32_t c = chunked.engine.allocateSlot();
  (void)decode(chunked, b, 9, 0, 13, true);
  for (int32_t layer = 0; layer < 3; ++layer)
    ASSERT_EQ(initialise(chunked, layer, c, chunked.engine.densify(layer, b),
                         -1),
              SS_OK);
  chunked.engine.setPosition(c, 13);
  const Outputs from = decode(chunked, c, 9, 13, 17, true);
  EXPECT_EQ(chunked.engine.position(c), 30);
  EXPECT_EQ(chunked.engine.position(b), 13);
  for (int32_t layer = 0; layer < 3; ++layer) {
    const auto expected = whole.engine.densify(layer, a);
    EXPECT_LE(distance(chunked.engine.densify(layer, c), expected),
              1e-3 * norm(expected));
  }
}

TEST(Init, AResetAfterItIsAFreshRequest) {
  EngineUnderTest test(threeLayers(0)), fresh(threeLayers(0));
  const int32_t slot = test.engine.allocateSlot();
  const int32_t other = fresh.engine.allocateSlot();
  for (int32_t layer = 0; layer < 3; ++layer) {
    const LayerSpec &spec = test.kernels.layers()[size_t(layer)];
    (void)initialise(test, layer, slot,
                     std::vector<float>(size_t(spec.heads * spec.dv * spec.dk),
                                        NAN),
                     -1);
  }
  test.engine.setPosition(slot, 5);
  test.engine.resetSlot(slot);
  EXPECT_EQ(decode(test, slot, 1, 0, 20, true),
            decode(fresh, other, 1, 0, 20, true));
}

TEST(Fork, TwoBranchesEqualTwoRuns) {
  for (int32_t shared : {0, 5, 8, 19, 40}) {
    EngineUnderTest forked(threeLayers(2, 0.1), optionsFor(2));
    EngineUnderTest apart(threeLayers(2, 0.1), optionsFor(2));
    const int32_t a = forked.engine.allocateSlot();
    const int32_t b = forked.engine.allocateSlot();
    const int32_t c = apart.engine.allocateSlot();
    const int32_t d = apart.engine.allocateSlot();
    (void)decode(forked, a, 1, 0, shared, true);
    (void)decode(forked, b, 8, 0, 11, true); // what it held is lost
    forked.engine.fork(a, b);
    (void)decode(apart, c, 1, 0, shared, true);
    (void)decode(apart, d, 1, 0, shared, true);
    for (int64_t token = shared; token < shared + 30; ++token) {
      EXPECT_EQ(decode(forked, a, 1, token, 1), decode(apart, c, 1, token, 1));
      EXPECT_EQ(decode(forked, b, 2, token, 1), decode(apart, d, 2, token, 1));
    }
    EXPECT_EQ(look(forked, a), look(apart, c));
    EXPECT_EQ(look(forked, b), look(apart, d));
    // Neither needs the other.
    forked.engine.freeSlot(a);
    EXPECT_EQ(decode(forked, b, 2, shared + 30, 20, true),
              decode(apart, d, 2, shared + 30, 20, true));
  }
}

} // namespace
