//===- InitTest.cpp - States from dense matrices --------------------------===//
//
// ss_state_init with the package's own init kernel, against exact SVDs in
// float64. SS_INIT_ROUNDS makes the comparison longer: 160 rounds are more than
// ten thousand matrices of each graph.
//
//===----------------------------------------------------------------------===//

#include "ConformanceTest.h"

#include "sinkstate/routines.h"

#include <Eigen/QR>
#include <Eigen/SVD>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

using Matrix = Eigen::MatrixXd;

Matrix randomBasis(std::mt19937_64 &random, int64_t rows, int64_t columns) {
  std::normal_distribution<double> gauss;
  Matrix m(rows, columns);
  for (double &x : m.reshaped())
    x = gauss(random);
  return Eigen::HouseholderQR<Matrix>(m).householderQ() *
         Matrix::Identity(rows, columns);
}

/// [dv, dk] with these singular values.
Matrix withSpectrum(std::mt19937_64 &random, int64_t dv, int64_t dk,
                    const std::vector<double> &values) {
  const auto n = int64_t(values.size());
  return randomBasis(random, dv, n) *
         Eigen::Map<const Eigen::VectorXd>(values.data(), n).asDiagonal() *
         randomBasis(random, dk, n).transpose();
}

/// Spectra that states have, and bad ones.
std::vector<std::vector<double>> spectra(std::mt19937_64 &random,
                                         int64_t side) {
  std::vector<std::vector<double>> all = {
      {},                        // zero
      {1},                       // rank 1
      {2, 2, 2, 2, 1, 1, 1, .5}, // repeated weights
      {1, 1e-2, 1e-4},           // a gap at the truncation
      std::vector<double>(size_t(side), 1.0)}; // full rank, all the same
  std::uniform_real_distribution<double> ratio(0.4, 0.95);
  std::uniform_int_distribution<int64_t> rank(1, side);
  for (int i = 0; i < 3; ++i) { // geometric, over noise
    const double r = ratio(random);
    std::vector<double> values;
    for (int64_t j = 0; j < side; ++j)
      values.push_back(std::max(std::pow(r, double(j)), 1e-6));
    all.push_back(values);
    values.resize(size_t(rank(random))); // and of exactly some rank
    all.push_back(values);
  }
  for (auto &values : all)
    if (int64_t(values.size()) > side)
      values.resize(size_t(side));
  return all;
}

/// States of a layer, one head a matrix, and the slots they are in.
class InitRun {
public:
  InitRun(Running &run, int32_t layer, int32_t type, bool dkFirst)
      : run(run), layer(layer), spec(run.layers[size_t(layer)]) {
    layout = {};
    layout.struct_size = sizeof layout;
    layout.type = type;
    layout.dv_stride = dkFirst ? 1 : spec.dk + 1;
    layout.dk_stride = dkFirst ? spec.dv + 2 : 1;
    layout.head_stride = dkFirst ? layout.dk_stride * spec.dk
                                 : layout.dv_stride * spec.dv;
    layout.slot_stride = layout.head_stride * spec.heads + 4;
  }

  /// Pads to whole slots with zero matrices, and initialises; the matrices
  /// become what they are in the element type.
  void initialise(std::vector<Matrix> &matrices, float eps,
                  uint64_t seed = 0) {
    while (matrices.size() % size_t(spec.heads))
      matrices.push_back(Matrix::Zero(spec.dv, spec.dk));
    const auto n = int32_t(matrices.size() / size_t(spec.heads));
    while (int32_t(slots.size()) < n)
      slots.push_back(run.engine.allocateSlot());
    std::vector<uint16_t> halves(size_t(n * layout.slot_stride), 0x7e01); // NaN
    std::vector<float> floats(halves.size(),
                              std::numeric_limits<float>::quiet_NaN());
    for (size_t i = 0; i < matrices.size(); ++i)
      put(matrices[i], int64_t(i), floats, halves);
    ss_init_options options = {};
    options.struct_size = sizeof options;
    options.eps = eps;
    options.seed = seed;
    auto call = [&](const void *dense) {
      check(ss_state_init(run.engine.get(), layer, slots.data(), nullptr, n,
                          dense, &layout, &options, nullptr));
    };
    if (layout.type == SS_ELEMENT_F32) {
      DeviceArray<float> array(run.engine, floats.size());
      array.copyIn(floats);
      call(array.data());
    } else {
      DeviceArray<uint16_t> array(run.engine, halves.size());
      array.copyIn(halves);
      call(array.data());
    }
  }

  int32_t rank(size_t i) { return run.engine.ranks(layer, slotOf(i))[headOf(i)]; }
  int32_t status(size_t i) {
    return run.engine.status(layer, slotOf(i))[headOf(i)];
  }
  Matrix state(size_t i) {
    const std::vector<float> all = run.engine.densify(layer, slotOf(i));
    return Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic,
                                          Eigen::RowMajor>>(
               all.data() + headOf(i) * size_t(spec.dv) * size_t(spec.dk),
               spec.dv, spec.dk)
        .cast<double>();
  }
  int32_t slotOf(size_t i) const { return slots[i / size_t(spec.heads)]; }

private:
  size_t headOf(size_t i) const { return i % size_t(spec.heads); }

  static float rounded(double value, int32_t type) {
    if (type == SS_ELEMENT_F32)
      return float(value);
    const int bits = type == SS_ELEMENT_F16 ? 11 : 8;
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    return float(std::ldexp(std::nearbyint(std::ldexp(fraction, bits)),
                            exponent - bits));
  }

  /// The bits of a value that the type has exactly and that is not subnormal.
  static uint16_t bitsOf(float value, int32_t type) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if (type == SS_ELEMENT_BF16)
      return uint16_t(bits >> 16);
    if (value == 0)
      return 0;
    const uint32_t exponent = (bits >> 23 & 255) - 112;
    return uint16_t((bits >> 16 & 0x8000) | exponent << 10 |
                    (bits >> 13 & 1023));
  }

  void put(Matrix &h, int64_t i, std::vector<float> &floats,
           std::vector<uint16_t> &halves) {
    const int64_t begin = i / spec.heads * layout.slot_stride +
                          i % spec.heads * layout.head_stride;
    for (int64_t v = 0; v < spec.dv; ++v)
      for (int64_t k = 0; k < spec.dk; ++k) {
        const auto at =
            size_t(begin + v * layout.dv_stride + k * layout.dk_stride);
        float value = rounded(h(v, k), layout.type);
        if (layout.type == SS_ELEMENT_F16 && std::fabs(value) < 0x1p-14f)
          value = 0;
        floats[at] = value;
        halves[at] = bitsOf(value, layout.type);
        h(v, k) = value;
      }
  }

  Running &run;
  int32_t layer;
  const LayerSpec &spec;
  ss_dense_layout layout;
  std::vector<int32_t> slots;
};

/// What the storage of rows adds, relative to the largest weight.
double roundingOf(const LayerSpec &layer) {
  return layer.storage == "f32" ? 1e-5 : layer.storage == "f16" ? 4e-3 : 3e-2;
}

/// Compares a state with the exact SVD of its matrix.
void checkState(InitRun &init, size_t i, const Matrix &h, double eps,
                const LayerSpec &layer) {
  const Eigen::VectorXd exact =
      Eigen::JacobiSVD<Matrix>(h).singularValues();
  const double largest = exact.size() > 0 ? exact[0] : 0;
  const Matrix found = init.state(i);
  const int32_t rank = init.rank(i);
  ASSERT_EQ(init.status(i), 0);
  int64_t least = 0, most = 0; // clearly kept, and maybe kept
  for (int64_t j = 0; j < exact.size(); ++j) {
    least += exact[j] > eps * 1.001 * largest;
    most += exact[j] >= eps * 0.999 * largest && exact[j] > 0;
  }
  const double rounding = roundingOf(layer) * largest;
  if (rank >= 0) {
    ASSERT_GE(rank, least);
    ASSERT_LE(rank, most);
    const double dropped = exact.tail(exact.size() - rank).norm();
    EXPECT_LE((found - h).norm(), 1.01 * dropped + 4 * rounding);
  } else {
    EXPECT_LE((found - h).norm(), 4 * rounding);
  }
  const Eigen::VectorXd weights =
      Eigen::JacobiSVD<Matrix>(found).singularValues();
  for (int64_t j = 0; j < least; ++j)
    ASSERT_NEAR(weights[j], exact[j], 1e-3 * exact[j] + rounding) << j;
}

class Init : public ConformanceTest {};

TEST_P(Init, EqualsTheExactSvd) {
  const char *text = std::getenv("SS_INIT_ROUNDS");
  const int rounds = text ? std::atoi(text) : 1;
  Running run(GetParam(), optionsFor(24), false);
  for (int32_t layer = 0; layer < run.engine.layerCount(); ++layer) {
    const LayerSpec &spec = run.layers[size_t(layer)];
    std::mt19937_64 random(uint64_t(spec.dv * 1000 + spec.dk));
    InitRun init(run, layer, SS_ELEMENT_F32, false);
    for (int round = 0; round < rounds; ++round)
      for (double scale : {1.0, 1e-30, 1e30})
        for (float eps : {3e-3f, 3e-2f}) {
          // A layer's other types may not have that range: rows hold it all the
          // same, in their weights.
          std::vector<Matrix> matrices;
          for (const auto &values :
               spectra(random, std::min(spec.dv, spec.dk)))
            matrices.push_back(
                scale * withSpectrum(random, spec.dv, spec.dk, values));
          init.initialise(matrices, eps);
          for (size_t i = 0; i < matrices.size(); ++i) {
            SCOPED_TRACE("layer " + std::to_string(layer) + " matrix " +
                         std::to_string(i) + " scale " + std::to_string(scale));
            checkState(init, i, matrices[i], eps, spec);
          }
        }
  }
}

TEST_P(Init, TakesEveryLayoutAndType) {
  Running run(GetParam(), optionsFor(24), false);
  for (int32_t layer = 0; layer < run.engine.layerCount(); ++layer) {
    const LayerSpec &spec = run.layers[size_t(layer)];
    std::mt19937_64 random(7);
    for (int32_t type : {SS_ELEMENT_F32, SS_ELEMENT_F16, SS_ELEMENT_BF16})
      for (bool dkFirst : {false, true}) {
        InitRun init(run, layer, type, dkFirst);
        std::vector<Matrix> matrices;
        for (int32_t i = 0; i < 3 * spec.heads; ++i)
          matrices.push_back(withSpectrum(random, spec.dv, spec.dk,
                                          {4, 3, 2, 1, 0.5, 0.2}));
        init.initialise(matrices, 1e-2f);
        for (size_t i = 0; i < matrices.size(); ++i) {
          SCOPED_TRACE("type " + std::to_string(type));
          checkState(init, i, matrices[i], 1e-2, spec);
        }
        for (size_t i = 0; i < matrices.size(); i += size_t(spec.heads))
          run.engine.freeSlot(init.slotOf(i));
      }
  }
}

// The same matrix, seed and layer: the same bits, in any slot and batch; and
// what is not finite stays in its state.
TEST_P(Init, DependsOnTheMatrixAloneAndKeepsNaNsApart) {
  Running run(GetParam(), optionsFor(8), false);
  for (int32_t layer = 0; layer < run.engine.layerCount(); ++layer) {
    const LayerSpec &spec = run.layers[size_t(layer)];
    std::mt19937_64 random(11);
    const Matrix h =
        withSpectrum(random, spec.dv, spec.dk, {3, 2, 1, .5, .25, .1});
    InitRun alone(run, layer, SS_ELEMENT_F32, false);
    std::vector<Matrix> one = {h};
    alone.initialise(one, 1e-2f, 42);
    const Matrix expected = alone.state(0);
    InitRun batch(run, layer, SS_ELEMENT_F32, true);
    std::vector<Matrix> many;
    const auto states = size_t(4 * spec.heads);
    for (size_t i = 0; i < states; ++i)
      many.push_back(i % 3 == 2 ? withSpectrum(random, spec.dv, spec.dk, {1})
                                : h);
    many[1](0, 3) = std::numeric_limits<double>::quiet_NaN();
    many[states - 1](2, 1) = std::numeric_limits<double>::infinity();
    batch.initialise(many, 1e-2f, 42);
    for (size_t i = 0; i < states; ++i) {
      const bool broken = i == 1 || i == states - 1;
      EXPECT_EQ(batch.status(i), broken ? SS_STATUS_NOT_FINITE : 0) << i;
      if (broken)
        EXPECT_TRUE(std::isnan(batch.state(i)(0, 0)));
      else if (i % 3 != 2)
        EXPECT_EQ(batch.state(i), expected) << i;
    }
    for (InitRun *done : {&alone, &batch})
      for (size_t i = 0; i < (done == &alone ? 1 : states);
           i += size_t(spec.heads))
        run.engine.freeSlot(done->slotOf(i));
  }
}

// A request goes on from an initialised state as the recurrence does.
TEST_P(Init, DecodingContinuesFromIt) {
  Running run(GetParam(), optionsFor(1));
  RequestStyle style;
  style.rank = 6;
  DrivenRequest request = run.request(3, style);
  std::mt19937_64 random(5);
  for (int32_t layer = 0; layer < run.engine.layerCount(); ++layer) {
    const LayerSpec &spec = run.layers[size_t(layer)];
    std::vector<float> dense;
    for (int32_t head = 0; head < spec.heads; ++head) {
      const Matrix h =
          withSpectrum(random, spec.dv, spec.dk, {2, 1, .7, .5, .2, .1, .05});
      for (int64_t v = 0; v < spec.dv; ++v)
        for (int64_t k = 0; k < spec.dk; ++k)
          dense.push_back(float(h(v, k)));
    }
    DeviceArray<float> array(run.engine, dense.size());
    array.copyIn(dense);
    ss_dense_layout layout = {};
    layout.struct_size = sizeof layout;
    check(ss_state_init(run.engine.get(), layer, &request.slot, nullptr, 1,
                        array.data(), &layout, nullptr, nullptr));
    run.driver.rebase(request, size_t(layer));
  }
  run.engine.setPosition(request.slot, 1003);
  // The next compaction is the earliest after 1003; until then it is exact.
  EXPECT_LE(run.driver.step({&request}).worstError, 1e-5);
  EXPECT_EQ(run.engine.position(request.slot), 1004);
}

INSTANTIATE_TEST_SUITE_P(Conformance, Init,
                         onEveryBackEnd({"init_80x128", "init_hybrid",
                                         "init_f16", "init_bf16"}),
                         caseName);

} // namespace
