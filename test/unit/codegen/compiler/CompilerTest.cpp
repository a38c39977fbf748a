//===- CompilerTest.cpp - graphs to packages through the C API ------------===//
//
// The whole way: the text of a graph, kernels in memory or in a folder, an
// engine over them, tokens, and a plain recurrence in double beside it.
//
//===----------------------------------------------------------------------===//
#include "sinkstate/compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

const char *const kGraph = R"(
ss.model @small {
  ss.layer @first type gdn index 0 heads 4 key_heads 2 dv 16 dk 32
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.1767766952966369
      policy #ss.policy<relative, 0.0> active 4 buffer 4 storage f32 form factored
  ss.layer @second type mamba2 index 2 heads 4 key_heads 2 dv 16 dk 32
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<relative, 0.0> active 4 buffer 4 storage f32 form factored
  ss.layer @third type kda index 3 heads 4 key_heads 2 dv 16 dk 32
      gate #ss.gate<softplus_channel> norm #ss.norm<add, 1.0e-6> query_scale 0.1767766952966369
      policy #ss.policy<relative, 0.0> active 4 buffer 4 storage f32 form factored
  ss.layer @fourth type gdn index 4 heads 4 key_heads 2 dv 16 dk 32
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.1767766952966369
      policy #ss.policy<relative, 0.0> active 4 buffer 4 storage f32 form dense
})";
constexpr int kLayers = 4, kHeads = 4, kKeyHeads = 2, kDv = 16, kDk = 32;
constexpr int kTokens = 21;

/// The inputs of one layer and token, and the weights of the layer.
struct Token {
  std::vector<float> q, k, v, gate, beta, aLog, dtBias;
};

std::vector<float> draw(std::mt19937 &generator, size_t count, float low,
                        float high) {
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

Token drawToken(int layer, int token) {
  bool channel = layer == 2;
  std::mt19937 weights(100 + layer), inputs(1000 * layer + token);
  int gates = kHeads * (channel ? kDk : 1);
  Token t;
  t.aLog = draw(weights, kHeads, -3, -1);
  t.dtBias = draw(weights, gates, -1, 1);
  t.q = draw(inputs, kKeyHeads * kDk, -1, 1);
  t.k = draw(inputs, kKeyHeads * kDk, -1, 1);
  t.v = draw(inputs, kHeads * kDv, -1, 1);
  t.gate = draw(inputs, gates, -2, 2);
  t.beta = draw(inputs, kHeads, -2, 2);
  return t;
}

/// H of one layer in double, updated and read as docs/state-math.md has it.
class Recurrence {
public:
  explicit Recurrence(int layer)
      : layer(layer), state(kHeads, std::vector<double>(kDv * kDk, 0.0)) {}

  std::vector<double> step(const Token &t) {
    std::vector<double> y;
    for (int head = 0; head < kHeads; ++head) {
      std::vector<double> result = stepHead(t, head);
      y.insert(y.end(), result.begin(), result.end());
    }
    return y;
  }
  double getNorm(int head) const {
    double sum = 0;
    for (double value : state[head])
      sum += value * value;
    return std::sqrt(sum);
  }
  const std::vector<double> &getState(int head) const { return state[head]; }

private:
  bool isMamba() const { return layer == 1; }
  std::vector<double> getVector(const std::vector<float> &from, int keyHead,
                                double scale) const {
    std::vector<double> x(from.begin() + keyHead * kDk,
                          from.begin() + (keyHead + 1) * kDk);
    double squares = 1e-6;
    for (double value : x)
      squares += value * value;
    for (double &value : x)
      value *= isMamba() ? 1.0 : scale / std::sqrt(squares);
    return x;
  }
  std::vector<double> stepHead(const Token &t, int head) {
    int keyHead = head / (kHeads / kKeyHeads);
    auto q = getVector(t.q, keyHead, 0.1767766952966369);
    auto k = getVector(t.k, keyHead, 1.0);
    std::vector<double> &h = state[head];
    double softplus = 0;
    for (int c = 0; c < kDk; ++c) {
      int at = layer == 2 ? head * kDk + c : head;
      softplus = std::log1p(std::exp(double(t.gate[at]) + t.dtBias[at]));
      double decay = std::exp(-std::exp(double(t.aLog[head])) * softplus);
      for (int r = 0; r < kDv; ++r)
        h[r * kDk + c] *= decay;
    }
    double weight =
        isMamba() ? softplus : 1 / (1 + std::exp(-double(t.beta[head])));
    std::vector<double> y(kDv);
    for (int r = 0; r < kDv; ++r) {
      double held = 0;
      for (int c = 0; c < kDk && !isMamba(); ++c)
        held += h[r * kDk + c] * k[c];
      double u = weight * (t.v[head * kDv + r] - held);
      for (int c = 0; c < kDk; ++c) {
        h[r * kDk + c] += u * k[c];
        y[r] += h[r * kDk + c] * q[c];
      }
    }
    return y;
  }

  int layer;
  std::vector<std::vector<double>> state;
};

/// An engine over a package, with one slot.
class Decoder {
public:
  explicit Decoder(ss_package *package) {
    ss_engine_options options;
    ss_engine_options_init(&options);
    options.dense_fallback = 0;
    EXPECT_EQ(ss_engine_create(package, &options, &engine), SS_OK)
        << ss_last_error();
    if (engine)
      EXPECT_EQ(ss_slot_alloc(engine, &slot, nullptr), SS_OK)
          << ss_last_error();
  }
  ~Decoder() { ss_engine_destroy(engine); }

  /// y of every layer.
  std::vector<float> step(int token) {
    std::vector<float> all;
    EXPECT_EQ(ss_begin_step(engine, &slot, 1, nullptr), SS_OK);
    for (int layer = 0; layer < kLayers; ++layer) {
      Token t = drawToken(layer, token);
      std::vector<float> y(kHeads * kDv);
      ss_decode_args args = {};
      args.struct_size = sizeof args;
      args.batch = 1;
      args.slots = &slot;
      args.q = {t.q.data(), 0};
      args.k = {t.k.data(), 0};
      args.v = {t.v.data(), 0};
      args.gate = {t.gate.data(), 0};
      args.beta = {t.beta.data(), 0};
      args.a_log = t.aLog.data();
      args.dt_bias = t.dtBias.data();
      args.y = y.data();
      EXPECT_EQ(ss_decode_layer(engine, layer, &args), SS_OK)
          << ss_last_error();
      all.insert(all.end(), y.begin(), y.end());
    }
    EXPECT_EQ(ss_end_step(engine, &slot, 1, nullptr), SS_OK);
    return all;
  }
  std::vector<float> densify(int layer) {
    std::vector<float> h(kHeads * kDv * kDk);
    EXPECT_EQ(ss_state_densify(engine, layer, slot, h.data()), SS_OK)
        << ss_last_error();
    return h;
  }
  bool isReady() const { return engine != nullptr; }

private:
  ss_engine *engine = nullptr;
  int32_t slot = -1;
};

std::string readFile(const std::filesystem::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// Every file under a folder with its contents.
std::map<std::string, std::string>
readFolder(const std::filesystem::path &path) {
  std::map<std::string, std::string> files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry, path)] = readFile(entry);
  return files;
}

class CompilerTest : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() /
             ("sinkstate-compiler-test-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  ss_result write(const std::string &text, const std::string &name) {
    return ss_write_package(text.data(), text.size(), "small.mlir",
                            (folder / name).c_str());
  }
  std::filesystem::path folder;
};

TEST_F(CompilerTest, CompiledInMemoryDecodesLikeTheRecurrence) {
  ss_compiled_model *model = nullptr;
  ASSERT_EQ(ss_compile_graph(kGraph, strlen(kGraph), "small.mlir", &model),
            SS_OK)
      << ss_compiler_last_error();
  ss_package *package = nullptr;
  ASSERT_EQ(ss_compiled_package(model, &package), SS_OK)
      << ss_compiler_last_error();
  {
    Decoder decoder(package);
    ASSERT_TRUE(decoder.isReady());
    std::vector<Recurrence> layers;
    for (int layer = 0; layer < kLayers; ++layer)
      layers.emplace_back(layer);
    for (int token = 0; token < kTokens; ++token) {
      std::vector<float> y = decoder.step(token);
      for (int layer = 0; layer < kLayers; ++layer) {
        std::vector<double> expected =
            layers[layer].step(drawToken(layer, token));
        for (int i = 0; i < kHeads * kDv; ++i)
          EXPECT_NEAR(y[layer * kHeads * kDv + i], expected[i],
                      1e-5 * std::max(1.0, layers[layer].getNorm(i / kDv)))
              << "layer " << layer << ", token " << token;
      }
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      std::vector<float> h = decoder.densify(layer);
      for (int i = 0; i < kHeads * kDv * kDk; ++i) {
        int head = i / (kDv * kDk);
        EXPECT_NEAR(h[i], layers[layer].getState(head)[i % (kDv * kDk)],
                    1e-5 * std::max(1.0, layers[layer].getNorm(head)));
      }
    }
  }
  ss_package_close(package);
  ss_compiled_model_destroy(model);
}

TEST_F(CompilerTest, FolderHoldsTheSameModelAndTheSameBytesEachTime) {
  ASSERT_EQ(write(kGraph, "a.sspkg"), SS_OK) << ss_compiler_last_error();
  // Another spelling of the same graph, over a package that is there already.
  std::filesystem::create_directories(folder / "b.sspkg");
  std::ofstream(folder / "b.sspkg" / "manifest.json")
      << "{\"format\": \"sinkstate-package\"}";
  std::ofstream(folder / "b.sspkg" / "old") << "old";
  ASSERT_EQ(write(std::string("// a comment\n") + kGraph, "b.sspkg"), SS_OK)
      << ss_compiler_last_error();
  auto files = readFolder(folder / "a.sspkg");
  EXPECT_EQ(files, readFolder(folder / "b.sspkg"));
  for (const char *name : {"manifest.json", "cpu/x86-64-v2.so",
                           "cpu/x86-64-v3.so", "cpu/x86-64-v4.so"})
    EXPECT_TRUE(files.count(name)) << name;
  size_t entries =
      std::distance(std::filesystem::directory_iterator(folder), {});
  EXPECT_EQ(entries, 2u) << "nothing temporary is left";

  ss_package *package = nullptr;
  ASSERT_EQ(ss_package_open((folder / "a.sspkg").c_str(), &package), SS_OK)
      << ss_last_error();
  {
    Decoder decoder(package);
    ASSERT_TRUE(decoder.isReady());
    std::vector<Recurrence> layers;
    for (int layer = 0; layer < kLayers; ++layer)
      layers.emplace_back(layer);
    for (int token = 0; token < kTokens; ++token) {
      std::vector<float> y = decoder.step(token);
      for (int layer = 0; layer < kLayers; ++layer) {
        std::vector<double> expected =
            layers[layer].step(drawToken(layer, token));
        for (int i = 0; i < kHeads * kDv; ++i)
          EXPECT_NEAR(y[layer * kHeads * kDv + i], expected[i],
                      1e-5 * std::max(1.0, layers[layer].getNorm(i / kDv)));
      }
    }
  }
  ss_package_close(package);
}

TEST_F(CompilerTest, WrongGraphsSayWhereAndLeaveNothing) {
  std::string wrong = kGraph;
  wrong.replace(wrong.find("heads 4"), 7, "heads 3");
  EXPECT_EQ(write(wrong, "a.sspkg"), SS_INVALID_ARGUMENT);
  std::string error = ss_compiler_last_error();
  EXPECT_NE(error.find("small.mlir\":3"), std::string::npos) << error;
  EXPECT_EQ(write("ss.model @m {", "a.sspkg"), SS_INVALID_ARGUMENT);
  EXPECT_EQ(write("module {}", "a.sspkg"), SS_INVALID_ARGUMENT);
  EXPECT_TRUE(std::filesystem::is_empty(folder));

  ss_compiled_model *model = nullptr;
  EXPECT_EQ(ss_compile_graph(wrong.data(), wrong.size(), "small.mlir", &model),
            SS_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(ss_compile_graph(nullptr, 0, "small.mlir", &model),
            SS_INVALID_ARGUMENT);
  ss_package *package = nullptr;
  EXPECT_EQ(ss_compiled_package(nullptr, &package), SS_INVALID_ARGUMENT);
}

TEST_F(CompilerTest, FolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder / "file") << "in the way";
  EXPECT_NE(write(kGraph, "file/a.sspkg"), SS_OK);
  std::string error = ss_compiler_last_error();
  EXPECT_NE(error.find("Not a directory"), std::string::npos) << error;
  EXPECT_EQ(readFolder(folder).size(), 1u);
}

TEST_F(CompilerTest, NothingButAPackageIsReplaced) {
  std::filesystem::create_directories(folder / "work");
  std::ofstream(folder / "work" / "thesis") << "mine";
  std::ofstream(folder / "work" / "manifest.json") << "{}";
  const auto before = readFolder(folder);
  for (const char *name : {"work", "work/thesis"}) {
    EXPECT_NE(write(kGraph, name), SS_OK);
    EXPECT_NE(std::string(ss_compiler_last_error())
                  .find("expected a new folder, an empty one or a package to "
                        "replace"),
              std::string::npos)
        << ss_compiler_last_error();
  }
  EXPECT_EQ(readFolder(folder), before);
}

} // namespace
