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
  auto layers = threeLayers(0, 1e-5);
  for (LayerSpec &layer : layers)
    layer.active = 16; // no frozen part, which would need consolidation
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

/// Matrices whose kernels have an init kernel, for every layer type.
std::vector<LayerSpec> withInitKernels(double eps) {
  std::vector<LayerSpec> layers =
      numbered({gdnLayer(2, 1, 24, 40), mamba2Layer(2, 2, 40, 16), kdaLayer(1, 1, 20, 36)});
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].initKernel = true;
    layers[i].policyValue = eps;
  }
  return layers;
}

/// A place for n matrices per slot, in a caller's type and strides.
struct Callers {
  Callers(const LayerSpec &spec, int32_t type, bool dkFirst, int64_t places)
      : spec(spec), layout(layoutOf(type)) {
    layout.dk_stride = dkFirst ? spec.dv + 1 : 1; // [.., dk, dv] or [.., dv, dk]
    layout.dv_stride = dkFirst ? 1 : spec.dk + 3;
    layout.head_stride =
        dkFirst ? layout.dk_stride * spec.dk : layout.dv_stride * spec.dv;
    layout.slot_stride = layout.head_stride * spec.heads + 9;
    const auto elements = size_t(places * layout.slot_stride);
    wide.assign(elements, NAN);
    narrow.assign(elements, 0x7fff);
  }
  void *data() {
    return layout.type == SS_ELEMENT_F32 ? static_cast<void *>(wide.data())
                                         : narrow.data();
  }
  /// Puts [heads, dv, dk] there and returns what it is after rounding.
  std::vector<float> put(int64_t place, const std::vector<float> &h) {
    std::vector<float> rounded;
    for (int64_t i = 0; i < int64_t(h.size()); ++i) {
      const int64_t k = i % spec.dk, v = i / spec.dk % spec.dv,
                    head = i / (spec.dk * spec.dv);
      const auto at = size_t(place * layout.slot_stride +
                             head * layout.head_stride +
                             v * layout.dv_stride + k * layout.dk_stride);
      float value = h[size_t(i)];
      if (layout.type == SS_ELEMENT_F32) {
        wide[at] = value;
      } else if (layout.type == SS_ELEMENT_F16) {
        narrow[at] = numeric::F16::narrow(value);
        value = numeric::F16::widen(narrow[at]);
      } else {
        narrow[at] = numeric::BF16::narrow(value);
        value = numeric::BF16::widen(narrow[at]);
      }
      rounded.push_back(value);
    }
    return rounded;
  }
  LayerSpec spec;
  ss_dense_layout layout;
  std::vector<float> wide;
  std::vector<uint16_t> narrow;
};

// Any layout, any element type, through init kernels: what lies between the
// elements (NaN) is not read. Back out through densify in the same layout.
TEST(Init, TakesAnyLayoutOfAnyType) {
  EngineUnderTest test(withInitKernels(1e-4), optionsFor(3));
  std::vector<int32_t> slots;
  for (int i = 0; i < 3; ++i)
    slots.push_back(test.engine.allocateSlot());
  const std::vector<int32_t> places = {4, 0, 2};
  for (int32_t type : {SS_ELEMENT_F32, SS_ELEMENT_F16, SS_ELEMENT_BF16})
    for (bool dkFirst : {false, true})
      for (int32_t index = 0; index < 3; ++index) {
        const LayerSpec &spec = test.kernels.layers()[size_t(index)];
        Callers callers(spec, type, dkFirst, 5), out(spec, type, dkFirst, 5);
        std::vector<std::vector<float>> expected;
        for (size_t i = 0; i < slots.size(); ++i) {
          std::vector<float> h;
          for (int32_t head = 0; head < spec.heads; ++head) {
            const auto one = randomMatrix(spec.dv, spec.dk, 2 + head,
                                          uint64_t(31 * i + size_t(head)));
            h.insert(h.end(), one.begin(), one.end());
          }
          expected.push_back(callers.put(places[i], h));
        }
        check(ss_state_init(test.engine.get(), index, slots.data(),
                            places.data(), 3, callers.data(), &callers.layout,
                            nullptr, nullptr));
        check(ss_state_densify_to(test.engine.get(), index, slots.data(),
                                  places.data(), 3, out.data(), &out.layout,
                                  nullptr));
        for (size_t i = 0; i < slots.size(); ++i) {
          const auto found = test.engine.densify(index, slots[i]);
          EXPECT_LE(distance(found, expected[i]), 2e-3 * norm(expected[i]));
          Callers again(spec, type, dkFirst, 5);
          const auto rounded = again.put(places[i], found);
          for (int32_t status : test.engine.status(index, slots[i]))
            EXPECT_EQ(status, 0);
          for (size_t at = 0; at < again.narrow.size(); ++at)
            if (type == SS_ELEMENT_F32 ? !std::isnan(again.wide[at])
                                       : again.narrow[at] != 0x7fff)
              ASSERT_TRUE(type == SS_ELEMENT_F32
                              ? again.wide[at] == out.wide[at]
                              : again.narrow[at] == out.narrow[at]);
        }
      }
}

// What an init kernel does not find: more components than it has room for, or
// an eps below its precision. An exact SVD takes over, or the dense form.
TEST(Init, MoreThanAKernelFindsIsExact) {
  auto layers = withInitKernels(1e-6); // below SS_INIT_LEAST_EPS
  EngineUnderTest test(layers);
  const int32_t slot = test.engine.allocateSlot();
  for (float eps : {1e-6f, 1e-3f})
    for (int32_t rank : {3, 17, 20}) {
      std::vector<float> h = randomMatrix(24, 40, rank, uint64_t(rank));
      const auto second = randomMatrix(24, 40, 1, 5);
      h.insert(h.end(), second.begin(), second.end());
      ASSERT_EQ(initialise(test, 0, slot, h, eps), SS_OK);
      // 24 * 40 / 65: from 15 components on it is smaller dense.
      EXPECT_EQ(test.engine.ranks(0, slot),
                (std::vector<int32_t>{
                    rank >= 15 ? -1 : rank, 1}));
      EXPECT_LE(distance(test.engine.densify(0, slot), h), 1e-5 * norm(h));
    }
}

TEST(Init, OfMoreStatesThanFitAtATimeIsTheSame) {
  LayerSpec layer = gdnLayer(2, 2, 16, 24);
  layer.initKernel = true;
  EngineUnderTest many({layer}, optionsFor(300)), alone({layer});
  const int32_t slot = alone.engine.allocateSlot();
  std::vector<float> all;
  std::vector<int32_t> slots;
  auto matrices = [](int32_t i) {
    auto h = randomMatrix(16, 24, 1 + i % 4, uint64_t(i));
    const auto second = randomMatrix(16, 24, 2, uint64_t(1000 + i));
    h.insert(h.end(), second.begin(), second.end());
    return h;
  };
  for (int32_t i = 0; i < 300; ++i) {
    slots.push_back(many.engine.allocateSlot());
    const auto h = matrices(i);
    all.insert(all.end(), h.begin(), h.end());
  }
  const ss_dense_layout layout = layoutOf();
  check(ss_state_init(many.engine.get(), 0, slots.data(), nullptr, 300,
                      all.data(), &layout, nullptr, nullptr));
  for (int32_t i : {0, 127, 128, 255, 299}) {
    ASSERT_EQ(initialise(alone, 0, slot, matrices(i), -1), SS_OK);
    EXPECT_EQ(many.engine.snapshot(slots[size_t(i)]),
              alone.engine.snapshot(slot));
  }
}

TEST(Init, BadArgumentsChangeNothing) {
  EngineUnderTest test(threeLayers(0), optionsFor(2));
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 11, true);
  const Seen before = look(test, slot);
  std::vector<float> dense(4096);
  const ss_dense_layout layout = layoutOf();
  ss_init_options options = {};
  options.struct_size = sizeof options;
  auto result = [&](std::vector<int32_t> slots, std::vector<int32_t> places,
                    float eps) {
    options.eps = eps;
    return ss_state_init(test.engine.get(), 0, slots.data(), places.data(),
                         int32_t(slots.size()), dense.data(), &layout,
                         &options, nullptr);
  };
  EXPECT_EQ(result({slot}, {0}, 1.0f), SS_INVALID_ARGUMENT);
  EXPECT_EQ(result({slot}, {0}, NAN), SS_INVALID_ARGUMENT);
  EXPECT_EQ(result({slot}, {-1}, 0.1f), SS_INVALID_ARGUMENT);
  EXPECT_EQ(result({slot, slot}, {0, 1}, 0.1f), SS_INVALID_ARGUMENT);
  EXPECT_EQ(result({1}, {0}, 0.1f), SS_INVALID_ARGUMENT); // without an owner
  EXPECT_EQ(look(test, slot), before);
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

/// The key of its random bits included.
TEST(Fork, HasWhatASnapshotHas) {
  EngineUnderTest test(threeLayers(0, 0.1), optionsFor(2));
  const int32_t a = test.engine.allocateSlot(), b = test.engine.allocateSlot();
  test.engine.setRoundingKey(a, 77);
  (void)decode(test, a, 1, 0, 21, true);
  (void)decode(test, b, 2, 0, 5, true);
  test.engine.fork(a, b);
  EXPECT_EQ(test.engine.snapshot(b), test.engine.snapshot(a));
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
