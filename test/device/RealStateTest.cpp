//===- RealStateTest.cpp - States of a trained model, initialised ---------===//
//
//   real-state-test MODEL PACKAGE cpu|cuda
//
// The small model reads its sample text; its dense states, at several tokens,
// become compressed ones through ss_state_init and are compared with exact
// SVDs. PACKAGE is made with ss-compile --init. SS_INIT_ROUNDS: windows of the
// text; 40 are ten thousand states.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "DenseBackend.h"

#include "sinkstate/routines.h"
#include "sinkstate/sinkstate.hpp"

#include <Eigen/SVD>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace sinkstate;
using tiny_hybrid::Decoder;
using tiny_hybrid::DenseBackend;
using tiny_hybrid::Model;

namespace {

struct {
  std::string model, package;
  bool cuda = false;
} arguments;

constexpr int kRequests = 4;
constexpr int kExitSkipped = 77;

class RealStates : public testing::Test {
protected:
  RealStates() : package(Package::open(arguments.package)) {
    ss_engine_options options = engineOptions();
    options.slots = kRequests;
    options.threads = 1;
    if (arguments.cuda)
      options.device = SS_DEVICE_CUDA;
    engine = std::make_unique<Engine>(package, options);
    for (int i = 0; i < kRequests; ++i)
      slots.push_back(engine->allocateSlot());
  }

  /// Initialises a layer's states and compares each with its exact SVD.
  void checkLayer(int32_t index, const std::vector<float> &states, float eps);

  Package package;
  std::unique_ptr<Engine> engine;
  std::vector<int32_t> slots;
  int64_t checked = 0, dense = 0;
};

void RealStates::checkLayer(int32_t index, const std::vector<float> &states,
                            float eps) {
  const ss_layer_info info = engine->layerInfo(index);
  ss_dense_layout layout = {};
  layout.struct_size = sizeof layout;
  layout.dv_stride = 1; // [batch, heads, dk, dv]
  layout.dk_stride = info.dv;
  layout.head_stride = layout.dk_stride * info.dk;
  layout.slot_stride = layout.head_stride * info.heads;
  ss_init_options options = {};
  options.struct_size = sizeof options;
  options.eps = eps;
  DeviceArray<float> array(*engine, states.size());
  array.copyIn(states);
  check(ss_state_init(engine->get(), index, slots.data(), nullptr, kRequests,
                      array.data(), &layout, &options, nullptr));
  for (size_t request = 0; request < size_t(kRequests); ++request) {
    const std::vector<float> found = engine->densify(index, slots[request]);
    const auto ranks = engine->ranks(index, slots[request]);
    const auto status = engine->status(index, slots[request]);
    for (size_t head = 0; head < size_t(info.heads); ++head, ++checked) {
      const auto floats = size_t(info.dv) * size_t(info.dk);
      const Eigen::MatrixXd h =
          Eigen::Map<const Eigen::MatrixXf>(
              states.data() + (request * size_t(info.heads) + head) * floats,
              info.dv, info.dk)
              .cast<double>();
      const Eigen::MatrixXd back =
          Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic,
                                         Eigen::RowMajor>>(
              found.data() + head * floats, info.dv, info.dk)
              .cast<double>();
      ASSERT_EQ(status[head] & ~SS_STATUS_TIGHTENED, 0);
      if (ranks[head] < 0) {
        ++dense;
        ASSERT_LE((back - h).norm(), 1e-6 * h.norm());
        continue;
      }
      const Eigen::VectorXd exact =
          Eigen::JacobiSVD<Eigen::MatrixXd>(h).singularValues();
      const Eigen::VectorXd weights =
          Eigen::JacobiSVD<Eigen::MatrixXd>(back).singularValues();
      int64_t least = 0, most = 0; // clearly kept, and maybe kept
      for (int64_t i = 0; i < exact.size(); ++i) {
        least += exact[i] > eps * 1.001 * exact[0];
        most += exact[i] >= eps * 0.999 * exact[0] && exact[i] > 0;
      }
      if (!(status[head] & SS_STATUS_TIGHTENED))
        ASSERT_GE(ranks[head], least);
      ASSERT_LE(ranks[head], most);
      const double dropped = exact.tail(exact.size() - ranks[head]).norm();
      EXPECT_LE((back - h).norm(), 1.01 * dropped + 1e-5 * h.norm());
      for (int64_t i = 0; i < std::min<int64_t>(least, ranks[head]); ++i)
        ASSERT_NEAR(weights[i], exact[i], 1e-3 * exact[i])
            << info.name << " weight " << i << " of " << ranks[head];
    }
  }
}

TEST_F(RealStates, BecomeTheirExactSvds) {
  auto model = Model::load(arguments.model);
  ASSERT_TRUE(model) << model.error();
  std::ifstream file(arguments.model + "/sample.bin", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const char *given = std::getenv("SS_INIT_ROUNDS");
  const int rounds = given ? std::atoi(given) : 1;
  constexpr int kTokens = 96;
  ASSERT_GE(text.size(), size_t(rounds * kRequests * kTokens));
  for (int round = 0; round < rounds; ++round) {
    DenseBackend states(model->config, kRequests, 1);
    Decoder decoder(*model, states, kRequests, 1);
    for (int token = 0; token < kTokens; ++token) {
      std::vector<uint8_t> bytes;
      for (int request = 0; request < kRequests; ++request)
        bytes.push_back(uint8_t(
            text[size_t(((round * kRequests) + request) * kTokens + token)]));
      ASSERT_FALSE(decoder.step(bytes));
      if (token != 3 && token != 23 && token != kTokens - 1)
        continue;
      for (int32_t layer = 0; layer < engine->layerCount(); ++layer)
        for (float eps : {2e-4f, 3e-3f, 3e-2f})
          checkLayer(layer, states.states(engine->layerInfo(layer).index),
                     eps);
      if (HasFatalFailure())
        return;
    }
  }
  std::printf("%lld states, %lld of them dense\n", (long long)(checked),
              (long long)(dense));
  EXPECT_GT(checked, dense);
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 4) {
    std::fprintf(stderr, "expected: real-state-test MODEL PACKAGE cpu|cuda\n");
    return 2;
  }
  arguments.model = argv[1];
  arguments.package = argv[2];
  arguments.cuda = std::string(argv[3]) == "cuda";
  try {
    ss_engine_options options = engineOptions();
    options.device = arguments.cuda ? SS_DEVICE_CUDA : SS_DEVICE_CPU;
    const Engine engine(Package::open(arguments.package), options);
  } catch (const Exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.code() == SS_DEVICE_UNAVAILABLE ? kExitSkipped : 1;
  }
  return RUN_ALL_TESTS();
}
