#include "Reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace sinkstate::numerics;

namespace {

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  }
  Vector gaussian(int n) {
    std::normal_distribution<double> normal;
    return Vector::NullaryExpr(n, [&](auto) { return normal(engine); });
  }

private:
  std::mt19937_64 engine;
};

enum class Layer { mamba2, gdn, kda };

/// A token whose keys are correlated with each other, as in real models.
Token randomToken(Layer layer, int dv, int dk, Random &random) {
  Token t;
  t.q = normalize(Norm::max, random.gaussian(dk), 1e-12);
  t.k = normalize(Norm::max, random.gaussian(dk) + Vector::Ones(dk), 1e-12);
  t.v = random.gaussian(dv);
  t.theta = layer != Layer::mamba2;
  t.weight = random.uniform(0.1, 0.9);
  if (layer == Layer::kda)
    t.alpha = Vector::NullaryExpr(
        dk, [&](auto) { return random.uniform(0.3, 1.0); });
  else
    t.alpha = Vector::Constant(dk, random.uniform(0.8, 1.0));
  return t;
}

class ReferenceTest : public ::testing::TestWithParam<Layer> {};

TEST_P(ReferenceTest, StepEqualsTheRecurrence) {
  Random random(1);
  FactoredState state(20, 32, 8);
  DenseState dense(20, 32);
  for (int t = 0; t < 16; ++t) {
    Token token = randomToken(GetParam(), 20, 32, random);
    Vector y = state.step(token), expected = dense.step(token);
    EXPECT_LE((y - expected).norm(), 1e-13 * dense.h.norm());
  }
  EXPECT_LE((state.dense() - dense.h).norm(), 1e-13 * dense.h.norm());
}

TEST_P(ReferenceTest, ChainWithCompactionsFollowsTheRecurrence) {
  Random random(2);
  FactoredState state(20, 32, 8);
  DenseState dense(20, 32);
  double bound = 0; // in the worst case dropped weights never decay
  for (int t = 0; t < 64; ++t) {
    Token token = randomToken(GetParam(), 20, 32, random);
    state.step(token);
    dense.step(token);
    if (state.buffered() == 8)
      bound += state.compact({Policy::relative, 0}).bound();
  }
  EXPECT_LE(bound, 1e-5);
  EXPECT_LE((state.dense() - dense.h).norm(), bound + 1e-12 * dense.h.norm());
}

TEST_P(ReferenceTest, CompactionKeepsTheStateAndIsOrthonormal) {
  Random random(3);
  FactoredState state(24, 16, 4);
  for (int round = 0; round < 4; ++round) {
    for (int t = 0; t < 4; ++t)
      state.step(randomToken(GetParam(), 24, 16, random));
    Matrix before = state.dense();
    Compaction done = state.compact({Policy::relative, 0});
    EXPECT_LE((state.dense() - before).norm(),
              done.bound() + 1e-13 * before.norm());
    EXPECT_EQ(state.buffered(), 0);
    for (int i = 1; i < state.rank(); ++i)
      EXPECT_LE(state.s[i], state.s[i - 1]);
    if (round == 0) {
      EXPECT_LE(orthogonalityError(state.u), 1e-12);
      EXPECT_LE(orthogonalityError(state.v), 1e-12);
    }
  }
}

TEST_P(ReferenceTest, CompactionByQrKeepsTheStateAndIsOrthonormalOnTheLeft) {
  Random random(3);
  FactoredState state(24, 16, 4);
  for (int round = 0; round < 4; ++round) {
    for (int t = 0; t < 4; ++t)
      state.step(randomToken(GetParam(), 24, 16, random));
    Matrix before = state.dense();
    Compaction done = state.compact({Policy::relative, 0}, Core::qr);
    EXPECT_LE((state.dense() - before).norm(),
              done.bound() + 1e-13 * before.norm());
    for (int i = 0; i < state.rank(); ++i)
      EXPECT_NEAR(state.v.col(i).norm(), 1, 1e-12);
    if (round == 0)
      EXPECT_LE(orthogonalityError(state.u), 1e-12);
  }
}

TEST_P(ReferenceTest, TruncationStaysWithinTheDroppedWeights) {
  for (Core core : {Core::svd, Core::qr})
  for (Policy policy : {Policy{Policy::relative, 0.2}, {Policy::fixed, 5},
                        {Policy::energy, 0.95}}) {
    Random random(4);
    FactoredState state(24, 32, 8);
    bool dropped = false;
    for (int t = 0; t < 64; ++t) {
      state.step(randomToken(GetParam(), 24, 32, random));
      if (state.buffered() < 8)
        continue;
      Matrix before = state.dense();
      Compaction done = state.compact(policy, core);
      EXPECT_LE((state.dense() - before).norm(),
                done.bound() * (1 + 1e-12) + 1e-13 * before.norm());
      dropped |= done.droppedWeights.size() > 0;
      if (policy.kind == Policy::fixed)
        EXPECT_EQ(state.rank(), 5);
      if (policy.kind == Policy::relative)
        EXPECT_GE(state.s[state.rank() - 1], 0.2 * state.s[0]);
    }
    EXPECT_TRUE(dropped);
  }
}

TEST_P(ReferenceTest, ConsolidationShrinksTheFrozenPart) {
  Random random(5);
  FactoredState state(24, 32, 4);
  for (int t = 0; t < 64; ++t) {
    state.step(randomToken(GetParam(), 24, 32, random));
    if (state.buffered() == 4)
      state.compact({Policy::relative, 0});
  }
  Matrix before = state.dense();
  Matrix activeBefore = state.u.leftCols(4);
  int rank = state.rank();
  ASSERT_GT(rank, 4);
  double dropped = state.consolidate(1e-3);
  EXPECT_LT(state.rank(), rank);
  EXPECT_LE((state.dense() - before).norm(), dropped + 1e-12 * before.norm());
  EXPECT_LE(orthogonalityError(state.u.rightCols(state.rank() - 4)), 1e-12);
  EXPECT_EQ(state.u.leftCols(4), activeBefore);
}

INSTANTIATE_TEST_SUITE_P(, ReferenceTest,
                         ::testing::Values(Layer::mamba2, Layer::gdn,
                                           Layer::kda),
                         [](const auto &info) {
                           return info.param == Layer::mamba2 ? "mamba2"
                                  : info.param == Layer::gdn  ? "gdn"
                                                              : "kda";
                         });

Vector vector4(double a, double b, double c, double d) {
  return Eigen::Vector4d(a, b, c, d);
}

/// The paper's figure 6 prints two decimals, and signs are free.
void expectPrinted(const Vector &actual, std::initializer_list<double> printed) {
  ASSERT_GE(actual.size(), int(printed.size()));
  int i = 0;
  for (double expected : printed)
    EXPECT_NEAR(std::abs(actual[i++]), expected, 0.0051);
}

TEST(WorkedExampleTest, MatchesThePaper) {
  FactoredState state(4, 4, 1);
  state.u = Matrix(4, 3);
  state.v = Matrix(4, 3);
  state.u << vector4(.2, .4, .4, .8), vector4(1, 0, 0, 0),
      vector4(0, 1, 0, 0);
  state.v << vector4(.4, .2, .8, .4), vector4(0, 0, 1, 0),
      vector4(0, 0, 0, 1);
  state.s = Eigen::Vector3d(5.76, 1.41, .79);
  state.append(vector4(.52, 1.04, .74, 1.48), vector4(.74, .52, 1.48, 1.04),
               .8);
  state.append(vector4(.48, -.04, .76, -.48), vector4(1.68, .64, -.64, -.72));
  Matrix before = state.dense();
  FactoredState all = state;
  Compaction done = state.compact({Policy::relative, .1});

  expectPrinted(done.core.row(0).transpose(), {8.96, .48, 0});
  expectPrinted(done.coreWeights, {8.99, 2.08, .04});
  ASSERT_EQ(state.rank(), 3);
  expectPrinted(state.s, {8.99, 2.08, 1.41});
  expectPrinted(done.droppedWeights, {.79, .04});
  expectPrinted(state.v.col(0), {.39, .22, .78, .44});
  expectPrinted(state.u.row(0).head(2).transpose(), {.22, .47});
  // The third active component is dropped; without truncation it comes last.
  // It is so small that the rounding of the printed inputs shows (.3048).
  all.compact({Policy::relative, 0});
  ASSERT_EQ(all.rank(), 5);
  EXPECT_NEAR(std::abs(all.u(0, 4)), .31, 0.006);
  EXPECT_LE((state.dense() - before).norm(), done.bound());
}

TEST(ReferenceInputsTest, GatesAndNorms) {
  EXPECT_DOUBLE_EQ(softplus(0), std::log(2));
  EXPECT_EQ(softplus(25), 25);
  EXPECT_DOUBLE_EQ(sigmoid(0), 0.5);
  Vector one = Vector::Ones(1), zero = Vector::Zero(1);
  EXPECT_DOUBLE_EQ(logDecay(Gate::softplus, zero, 0, zero)[0], -std::log(2));
  EXPECT_DOUBLE_EQ(logDecay(Gate::boundedChannel, one, 0, -one, -5)[0], -2.5);
  Vector x = Eigen::Vector2d(3, 4);
  EXPECT_DOUBLE_EQ(normalize(Norm::max, x, 1e-12, 2)[1], 1.6);
  EXPECT_DOUBLE_EQ(normalize(Norm::add, x, 75)[0], 0.3);
  EXPECT_EQ(normalize(Norm::max, Vector::Zero(2), 1e-12), Vector::Zero(2));
}

} // namespace
