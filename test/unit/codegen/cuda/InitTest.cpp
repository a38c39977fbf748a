//===- InitTest.cpp - States from dense matrices, on both back ends -------===//

#include "HostKernels.h"

#include "codegen/cpu/CpuCodegen.h"
#include "dialect/ssk/SSKDialect.h"
#include "sinkstate/cpu_routines.h"
#include "sinkstate/routines.h"

#include <Eigen/SVD>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

constexpr int64_t kCapacity = 64;

/// The arguments of an init kernel in memory of its own; state i is initialised
/// from matrix i.
struct InitMemory {
  InitMemory(int64_t states, int64_t dv, int64_t dk, float eps)
      : rows(size_t(states * kCapacity * (dv + dk))),
        weights(size_t(states * kCapacity)), rank(size_t(states), 5),
        status(size_t(states), 77),
        workCount{int32_t(states)}, eps(eps) {
    for (int64_t i = 0; i < states; ++i) {
      base.push_back(i * kCapacity);
      matrixBase.push_back(i * dv * dk);
      work.push_back(int32_t(i));
    }
  }

  std::vector<const void *> arguments(ssk::KernelOp kernel) {
    pointers = {{"factors", rows.data()},      {"weights", weights.data()},
                {"row_base", base.data()},     {"rank", rank.data()},
                {"status", status.data()},     {"work", work.data()},
                {"work_count", workCount.data()},
                {"matrices", matrices.data()}, {"matrix_base", matrixBase.data()}};
    std::vector<const void *> list;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      const std::string name = kernel.getArgumentName(i).str();
      if (name == "policy_value")
        list.push_back(&eps);
      else if (name == "max_rank")
        list.push_back(&maxRank);
      else if (name == "seed")
        list.push_back(&seed);
      else
        list.push_back(&pointers.at(name));
    }
    return list;
  }

  std::vector<float> matrices, rows, weights;
  std::vector<int32_t> rank, status, work, workCount;
  std::vector<int64_t> base, matrixBase;
  std::map<std::string, void *> pointers;
  float eps;
  int32_t maxRank = int32_t(kCapacity);
  int64_t seed = 1234;
};

/// Kernels of one layer of one head.
class InitKernel {
public:
  InitKernel(int64_t dv, int64_t dk, const std::string &options = "")
      : dv(dv), dk(dk),
        module("ss.model @model {\n  ss.layer @layer type gdn index 0 heads 1 "
               "key_heads 1 dv " +
                   std::to_string(dv) + " dk " + std::to_string(dk) +
                   " gate #ss.gate<softplus> norm #ss.norm<none> query_scale "
                   "1.0 policy #ss.policy<relative, 3.0e-3> active 4 buffer 4 "
                   "storage f32 form factored\n}\n",
               "builtin.module(ss-pipeline{init=true" + options + "})") {
    for (ssk::KernelOp candidate : module.get().getOps<ssk::KernelOp>())
      if (candidate.getRole() == "init")
        kernel = candidate;
  }

  void runOnCpu(InitMemory &memory) {
    if (!jit) {
      auto made = cpu::CpuJit::compile(module.get());
      ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
      jit = std::move(*made);
    }
    ss_cpu_kernel entry = jit->lookup(kernel.getName());
    ASSERT_NE(entry, nullptr);
    const auto arguments = memory.arguments(kernel);
    entry(arguments.data(), ss_cpu_routines(), 0,
             int64_t(memory.rank.size()));
  }

  int64_t dv, dk;
  PreparedModule module;
  ssk::KernelOp kernel;
  std::unique_ptr<cpu::CpuJit> jit;
};

using Matrix = Eigen::MatrixXd;

/// A random matrix with these singular values.
Matrix withSpectrum(int64_t dv, int64_t dk, const std::vector<double> &values,
                    std::mt19937_64 &random) {
  std::normal_distribution<double> gauss;
  auto basis = [&](int64_t n) {
    Matrix m(n, int64_t(values.size()));
    for (int64_t i = 0; i < m.size(); ++i)
      m.data()[i] = gauss(random);
    Eigen::HouseholderQR<Matrix> qr(m);
    return Matrix(qr.householderQ() * Matrix::Identity(n, m.cols()));
  };
  Matrix diagonal = Matrix::Zero(int64_t(values.size()), int64_t(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    diagonal(int64_t(i), int64_t(i)) = values[i];
  return basis(dv) * diagonal * basis(dk).transpose();
}

/// Spectra that states have, and bad ones.
std::vector<std::vector<double>> spectra(int64_t most, std::mt19937_64 &random) {
  std::vector<std::vector<double>> all;
  std::uniform_real_distribution<double> uniform(0.3, 0.9);
  for (int i = 0; i < 4; ++i) { // geometric, with noise behind
    std::vector<double> s;
    const double ratio = uniform(random);
    for (int64_t j = 0; j < most; ++j)
      s.push_back(std::max(std::pow(ratio, double(j)), 1e-6));
    all.push_back(s);
  }
  std::vector<double> slow;
  for (int64_t j = 0; j < most; ++j)
    slow.push_back(1 / (1.0 + double(j) * double(j)));
  all.push_back(slow);
  all.push_back({1});                                  // rank 1
  all.push_back({0});                                  // zero
  all.push_back({2, 2, 2, 2, 1, 1, 1, 0.5, 0.5});      // repeated
  all.push_back({1, 1e-2, 1e-4});                      // below eps at the end
  return all;
}

void append(InitMemory &memory, const Matrix &h) {
  for (int64_t c = 0; c < h.cols(); ++c)
    for (int64_t r = 0; r < h.rows(); ++r)
      memory.matrices.push_back(float(h(r, c)));
}

/// Compares one state with the exact SVD of its float32 matrix.
void checkState(const InitMemory &memory, int64_t state, int64_t dv, int64_t dk,
                double scale) {
  Matrix h(dv, dk);
  for (int64_t c = 0; c < dk; ++c)
    for (int64_t r = 0; r < dv; ++r)
      h(r, c) = memory.matrices[size_t((state * dk + c) * dv + r)] / scale;
  const Eigen::VectorXd exact = Eigen::JacobiSVD<Matrix>(h).singularValues();
  const double eps = memory.eps;
  int64_t least = 0, most = 0; // weights clearly kept, and maybe kept
  for (int64_t i = 0; i < exact.size(); ++i) {
    least += exact[i] > eps * 1.001 * exact[0] && exact[i] > 0;
    most += exact[i] >= eps * 0.999 * exact[0] && exact[i] > 0;
  }
  const int64_t rank = memory.rank[size_t(state)];
  ASSERT_EQ(memory.status[size_t(state)], 0) << state;
  ASSERT_GE(rank, least) << state;
  ASSERT_LE(rank, most) << state;
  Matrix u(dv, rank), v(dk, rank), found = Matrix::Zero(dv, dk);
  for (int64_t i = 0; i < rank; ++i) {
    const float *row =
        memory.rows.data() + (state * kCapacity + i) * (dv + dk);
    for (int64_t c = 0; c < dk; ++c)
      v(c, i) = row[c];
    for (int64_t r = 0; r < dv; ++r)
      u(r, i) = row[dk + r];
    const double weight =
        memory.weights[size_t(state * kCapacity + i)] / scale;
    ASSERT_NEAR(weight, exact[i], 1e-3 * exact[i]) << state << " weight " << i;
    found += weight * u.col(i) * v.col(i).transpose();
  }
  const Matrix one = Matrix::Identity(rank, rank);
  if (rank > 0) {
    EXPECT_LE((u.transpose() * u - one).cwiseAbs().maxCoeff(), 1e-5) << state;
    EXPECT_LE((v.transpose() * v - one).cwiseAbs().maxCoeff(), 1e-5) << state;
  }
  const double dropped =
      exact.tail(exact.size() - rank).norm() + 1e-5 * exact.norm();
  EXPECT_LE((found - h).norm(), 1.01 * dropped) << state;
}

class InitSizes : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

// SS_INIT_ROUNDS=120: the long form, ten thousand matrices.
TEST_P(InitSizes, EqualsTheExactSvd) {
  const auto [dv, dk] = GetParam();
  InitKernel kernel(dv, dk);
  const char *text = std::getenv("SS_INIT_ROUNDS");
  const int rounds = text ? std::atoi(text) : 1;
  std::mt19937_64 random(uint64_t(dv * 1000 + dk));
  for (int round = 0; round < rounds; ++round)
    for (double scale : {1.0, 1e-30, 1e30}) {
      std::vector<Matrix> matrices;
      for (const auto &s : spectra(std::min<int64_t>(std::min(dv, dk), 40), random))
        matrices.push_back(withSpectrum(dv, dk, s, random));
      InitMemory memory(int64_t(matrices.size()), dv, dk, 3e-3f);
      for (const Matrix &h : matrices)
        append(memory, h * scale);
      kernel.runOnCpu(memory);
      for (size_t i = 0; i < matrices.size(); ++i)
        if (memory.rank[i] >= 0)
          checkState(memory, int64_t(i), dv, dk, scale);
    }
}

/// Spectra of `count` weights, and as many again that are noise: from 1 to `eps`
/// in even ratios, repeated, in steps, one large weight before weak ones, and as
/// many strong as weak ones.
std::vector<std::vector<double>> spectraDownTo(double eps, int64_t count) {
  std::vector<std::vector<double>> all(5);
  for (int64_t j = 0; j < count; ++j) {
    const double part = double(j) / double(count - 1);
    all[0].push_back(std::pow(1.2 * eps, part));
    all[1].push_back(std::pow(1.2 * eps, std::floor(part * 3.99) / 3));
    all[2].push_back(j % 2 ? 1.2 * eps * (1 + part) : 1 - part / 2);
    all[3].push_back(j == 0 ? 1 : 1.5 * eps * (2 - part));
    all[4].push_back(j < count / 2 ? 1.0 : 1.2 * eps);
  }
  for (auto &values : all)
    for (int64_t j = 0; j < count / 3; ++j)
      values.push_back(eps * std::pow(0.5, double(j + 1)));
  return all;
}

// SS_INIT_ROUNDS=20: the long form.
TEST_P(InitSizes, KeepsWeakComponentsOrthogonal) {
  const auto [dv, dk] = GetParam();
  InitKernel kernel(dv, dk);
  const char *text = std::getenv("SS_INIT_ROUNDS");
  const int rounds = text ? std::atoi(text) : 1;
  std::mt19937_64 random(uint64_t(dv * 1000 + dk + 1));
  const int64_t side = std::min(dv, dk);
  for (int round = 0; round < rounds; ++round)
    for (float eps : {0x1p-13f, 2e-4f, 1e-3f, 3e-3f, 1e-2f, 1e-1f})
      for (double scale : {1.0, 1e-30, 1e30}) {
        std::vector<Matrix> matrices;
        for (int64_t count : {std::min<int64_t>(44, side * 5 / 8), side / 3})
          for (const auto &s : spectraDownTo(eps, std::max<int64_t>(count, 2)))
            matrices.push_back(withSpectrum(dv, dk, s, random));
        InitMemory memory(int64_t(matrices.size()), dv, dk, eps);
        for (const Matrix &h : matrices)
          append(memory, h * scale);
        kernel.runOnCpu(memory);
        for (size_t i = 0; i < matrices.size(); ++i) {
          SCOPED_TRACE("eps " + std::to_string(eps));
          ASSERT_GE(memory.rank[i], 0) << i;
          checkState(memory, int64_t(i), dv, dk, scale);
        }
      }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, InitSizes,
    testing::Values(std::pair<int64_t, int64_t>{80, 128},
                    std::pair<int64_t, int64_t>{128, 128},
                    std::pair<int64_t, int64_t>{64, 64},
                    std::pair<int64_t, int64_t>{24, 40},
                    std::pair<int64_t, int64_t>{16, 12}),
    [](const auto &info) {
      return std::to_string(info.param.first) + "x" +
             std::to_string(info.param.second);
    });

TEST(Init, AFullRankMatrixGoesDense) {
  InitKernel kernel(80, 128);
  std::mt19937_64 random(3);
  InitMemory memory(1, 80, 128, 3e-3f);
  append(memory, withSpectrum(80, 128, std::vector<double>(80, 1.0), random));
  kernel.runOnCpu(memory);
  EXPECT_EQ(memory.rank[0], -1);
  EXPECT_EQ(memory.status[0], 0);
}

TEST(Init, ANaNOrInfinityStaysInItsState) {
  InitKernel kernel(24, 40);
  std::mt19937_64 random(3);
  InitMemory memory(3, 24, 40, 3e-3f);
  for (int i = 0; i < 3; ++i)
    append(memory, withSpectrum(24, 40, {1, 0.5}, random));
  memory.matrices[17] = NAN;
  memory.matrices[960 + 5] = INFINITY;
  kernel.runOnCpu(memory);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(memory.status[size_t(i)] & SS_STATUS_NOT_FINITE, 1) << i;
    EXPECT_EQ(memory.rank[size_t(i)], 1);
    EXPECT_TRUE(std::isnan(memory.weights[size_t(i * kCapacity)]));
  }
  checkState(memory, 2, 24, 40, 1);
}

// The bits depend on the matrix alone, not on the state's number or the seed.
TEST(Init, IsTheSameInEveryPlaceAndForEverySeed) {
  InitKernel kernel(24, 40);
  std::mt19937_64 random(4);
  const Matrix h = withSpectrum(24, 40, {1, 0.7, 0.3, 0.2, 0.1}, random);
  InitMemory memory(3, 24, 40, 3e-3f);
  for (int i = 0; i < 3; ++i)
    append(memory, h);
  kernel.runOnCpu(memory);
  const size_t stride = size_t(kCapacity * 64);
  for (size_t i = 0; i < stride; ++i)
    ASSERT_EQ(memory.rows[i], memory.rows[2 * stride + i]);
  InitMemory other(1, 24, 40, 3e-3f);
  append(other, h);
  other.seed = 99;
  kernel.runOnCpu(other);
  checkState(other, 0, 24, 40, 1);
  for (size_t i = 0; i < stride; ++i)
    ASSERT_EQ(other.rows[i], memory.rows[i]);
}

TEST(Init, KeepsAtMostMaxRank) {
  InitKernel kernel(24, 40);
  std::mt19937_64 random(4);
  InitMemory memory(1, 24, 40, 3e-3f);
  append(memory, withSpectrum(24, 40, {1, 0.7, 0.3, 0.2, 0.1}, random));
  memory.maxRank = 3;
  kernel.runOnCpu(memory);
  EXPECT_EQ(memory.rank[0], 3);
}

// One warp or several a state: in all orders of lanes and warps the same bits.
void compareWithEmulatedGpu(int64_t dv, int64_t dk, const std::string &options,
                            int64_t warps) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  InitKernel kernel(dv, dk, options);
  ASSERT_EQ(int64_t(kernel.kernel.getWarpsOfProgram()), warps);
  BothBackEnds both(kernel.module);
  std::vector<float> first;
  for (int order : {0, 1, 2}) {
    std::mt19937_64 random(5);
    InitMemory cpu(2, dv, dk, 3e-3f), cuda(2, dv, dk, 3e-3f);
    for (const auto &s : {std::vector<double>{1, 0.6, 0.2, 0.05}, {3}}) {
      const Matrix h = withSpectrum(dv, dk, s, random);
      append(cpu, h);
      append(cuda, h);
    }
    both.run(kernel.kernel.getName().str(), cpu.arguments(kernel.kernel),
             cuda.arguments(kernel.kernel), 2, order);
    EXPECT_EQ(cpu.rank, cuda.rank);
    for (int64_t state = 0; state < 2; ++state)
      checkState(cuda, state, dv, dk, 1);
    if (order == 0)
      first = cuda.rows;
    EXPECT_EQ(first, cuda.rows) << "order " << order;
  }
}

TEST(Init, TheEmulatedGpuFindsTheSame) {
  compareWithEmulatedGpu(20, 32, "", 4);
}

TEST(Init, TheEmulatedGpuFindsTheSameWithOneWarp) {
  compareWithEmulatedGpu(20, 32, " programs-per-block=2", 1);
}

TEST(Init, TheEmulatedGpuFindsTheSameWithOtherWarps) {
  compareWithEmulatedGpu(20, 32, " init-warps=2", 2);
  compareWithEmulatedGpu(20, 32, " init-warps=8", 8);
}

TEST(Init, TheEmulatedGpuFindsTheSameOfAWideMatrix) {
  compareWithEmulatedGpu(32, 20, "", 4);
}

} // namespace
