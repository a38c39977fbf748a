//===- LayerTest.cpp - whole kernels of a layer, CUDA against CPU -------------------===//
//
// The kernels of one layer of each type, made from its graph: sixteen tokens with a
// compaction after the eighth and the sixteenth, then the dense matrix of every state.
// The printed CUDA C++ runs in an emulated warp and must agree with the CPU code.
//
//===----------------------------------------------------------------------===//
#include "HostKernels.h"

#include "dialect/ssk/SSKDialect.h"
#include "sinkstate/cpu_routines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

struct Shape {
  const char *type, *gate, *norm, *policy;
  int64_t heads, keyHeads, dv, dk, active, buffer;
  const char *core = "svd", *storage = "f32"; ///< f16, bf16: `rows` is half empty
  float keys = 1; ///< what keys and queries are times
  const char *options = ""; ///< of the pipeline
};

std::string getGraph(const Shape &s) {
  auto text = [](int64_t n) { return std::to_string(n); };
  return std::string("ss.model @model {\n  ss.layer @layer type ") + s.type + " index 0 heads " +
         text(s.heads) + " key_heads " + text(s.keyHeads) + " dv " + text(s.dv) + " dk " +
         text(s.dk) + " gate #ss.gate<" + s.gate + "> norm #ss.norm<" + s.norm +
         "> query_scale 0.25 policy #ss.policy<" + s.policy + "> active " + text(s.active) +
         " buffer " + text(s.buffer) + " core " + s.core + " storage " + s.storage + " form factored\n}\n";
}

/// The arguments of a layer's kernels by name, in memory of its own.
class LayerMemory {
public:
  LayerMemory(const Shape &s, int64_t slots, int64_t rankBound) : shape(s), slots(slots) {
    int64_t states = slots * s.heads, row = s.dk + s.dv;
    floats["rows"].assign(states * rankBound * row, 0.0f);
    floats["weights"].assign(states * rankBound, 0.0f);
    floats["buffer_k"].assign(slots * s.keyHeads * s.buffer * s.dk, 0.0f);
    floats["buffer_u"].assign(states * s.buffer * s.dv, 0.0f);
    bool byChannel = std::string(s.type) == "kda";
    floats["buffer_g"].assign(states * s.buffer * (byChannel ? s.dk : 1), 0.0f);
    floats["out"].assign(states * s.dk * s.dv, 0.0f);
    ints["rank"].assign(states, 0);
    ints["status"].assign(states, 0);
    ints["count"].assign(slots, 0);
    ints["work_count"] = {int32_t(states)};
    ints["row_capacity"].assign(states, int32_t(rankBound));
    scalars32["count_ahead"] = 0;
    scalars32["ordered"] = 1;
    scalars32["max_rank"] = int32_t(rankBound);
    for (int64_t state = 0; state < states; ++state) {
      longs["row_base"].push_back(state * rankBound);
      longs["out_base"].push_back(state * s.dk * s.dv);
      ints["work"].push_back(int32_t(state));
    }
    policyValue = 1e-3f;
    std::mt19937 generator(11);
    setInputs(generator, byChannel);
  }

  /// One token of every slot; one row of the batch is padding.
  void setInputs(std::mt19937 &generator, bool byChannel) {
    std::normal_distribution<float> normal;
    int64_t batch = slots + 1;
    auto random = [&](const char *name, int64_t perRow, int64_t rows) {
      floats[name].resize(rows * perRow);
      for (float &value : floats[name])
        value = normal(generator);
      longs_scalars[std::string(name) + "_stride"] = perRow;
    };
    random("q", shape.keyHeads * shape.dk, batch);
    random("k", shape.keyHeads * shape.dk, batch);
    for (const char *name : {"q", "k"})
      for (float &value : floats[name])
        value *= shape.keys;
    random("v", shape.heads * shape.dv, batch);
    random("gate", shape.heads * (byChannel ? shape.dk : 1), batch);
    random("beta", shape.heads, batch);
    random("y", shape.heads * shape.dv, batch);
    random("a_log", shape.heads, 1);
    random("dt_bias", shape.heads * (byChannel ? shape.dk : 1), 1);
    ints["slots"].clear();
    for (int64_t slot = 0; slot < slots; ++slot)
      ints["slots"].push_back(int32_t(slots - 1 - slot));
    ints["slots"].insert(ints["slots"].begin() + 1, -1);
    ints["order"].resize(batch * shape.heads);
    std::iota(ints["order"].rbegin(), ints["order"].rend(), 0);
  }

  /// The pointers of a kernel's arguments.
  std::vector<const void *> getArguments(ssk::KernelOp kernel) {
    std::vector<const void *> arguments;
    for (unsigned i = 0; i < kernel.getArgumentTypes().size(); ++i) {
      std::string name = kernel.getArgumentName(i).str();
      const void *pointer = nullptr;
      if (auto it = floats.find(name); it != floats.end())
        pointer = &(pointers[name] = it->second.data());
      else if (auto it = ints.find(name); it != ints.end())
        pointer = &(pointers[name] = it->second.data());
      else if (auto it = longs.find(name); it != longs.end())
        pointer = &(pointers[name] = it->second.data());
      else if (auto it = scalars32.find(name); it != scalars32.end())
        pointer = &it->second;
      else if (auto it = longs_scalars.find(name); it != longs_scalars.end())
        pointer = &it->second;
      else if (name == "policy_value")
        pointer = &policyValue;
      EXPECT_TRUE(pointer) << "no memory for argument " << name;
      arguments.push_back(pointer);
    }
    return arguments;
  }

  Shape shape;
  int64_t slots;
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, std::vector<int32_t>> ints;
  std::map<std::string, std::vector<int64_t>> longs;
  std::map<std::string, int32_t> scalars32;
  std::map<std::string, int64_t> longs_scalars;
  std::map<std::string, void *> pointers;
  float policyValue;
};

/// Takes seconds in the emulator: one compaction and one matrix will do.
bool isLarge(const Shape &shape) { return shape.active > 8; }

/// Where rows are rounded, the last bits of what was computed may decide a rounding.
double getTolerance(const Shape &shape) {
  const std::string storage = shape.storage;
  return storage == "f32" ? 2e-5 : storage == "f16" ? 0x1p-10 : 0x1p-7;
}

void expectNear(const std::vector<float> &cpu, const std::vector<float> &cuda, double tolerance,
                const char *what) {
  double scale = 1e-3;
  for (float value : cpu)
    scale = std::max(scale, std::abs(double(value)));
  for (size_t i = 0; i < cpu.size(); ++i)
    ASSERT_NEAR(cpu[i], cuda[i], tolerance * scale) << what << " element " << i;
}

bool haveSameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Layer : public testing::TestWithParam<Shape> {};

TEST_P(Layer, DecodesCompactsAndDensifiesLikeTheCpu) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  Shape shape = GetParam();
  PreparedModule module(getGraph(shape), "builtin.module(ss-pipeline{" +
                                             std::string(shape.options) + "})");
  ASSERT_TRUE(module);
  BothBackEnds both(module);
  std::map<std::string, ssk::KernelOp> kernels;
  for (ssk::KernelOp kernel : module.get().getOps<ssk::KernelOp>())
    kernels[kernel.getRole().value_or("").str()] = kernel;
  ASSERT_EQ(kernels.size(), 3u);

  const int64_t slots = isLarge(shape) ? 1 : 2, states = slots * shape.heads;
  const int64_t rankBound = std::min(shape.dv, shape.dk) + shape.active + shape.buffer;
  LayerMemory cpu(shape, slots, rankBound), cuda(shape, slots, rankBound);
  std::mt19937 inputs(5), sameInputs(5);
  bool byChannel = std::string(shape.type) == "kda";
  auto run = [&](const char *role, int64_t programs, int order) {
    ssk::KernelOp kernel = kernels[role];
    both.run(kernel.getName().str(), cpu.getArguments(kernel), cuda.getArguments(kernel), programs,
             order);
  };
  // A warp for each part writes the same bits.
  auto runByParts = [&](LayerMemory &memory, int64_t programs, int order) {
    ssk::KernelOp kernel = kernels["decode"];
    both.getEmulated().run(kernel.getName().str() + "_parts",
                           memory.getArguments(kernel).data(), programs, order);
  };
  for (int token = 0; token < (isLarge(shape) ? 1 : 2) * shape.buffer; ++token) {
    SCOPED_TRACE("token " + std::to_string(token));
    cpu.setInputs(inputs, byChannel);
    cuda.setInputs(sameInputs, byChannel);
    const int64_t programs = (slots + 1) * shape.heads;
    LayerMemory byParts = cuda;
    run("decode", programs, token % 3);
    runByParts(byParts, programs, (token + 1) % 3);
    for (const char *written : {"y", "buffer_k", "buffer_u", "buffer_g"})
      EXPECT_TRUE(haveSameBits(cuda.floats[written], byParts.floats[written])) << written;
    expectNear(cpu.floats["y"], cuda.floats["y"], getTolerance(shape), "y");
    bool isFull = (token + 1) % shape.buffer == 0;
    for (LayerMemory *memory : {&cpu, &cuda})
      for (int32_t &count : memory->ints["count"])
        ++count;
    if (isFull) {
      run("compact", states, token % 3);
      for (LayerMemory *memory : {&cpu, &cuda})
        for (int32_t &count : memory->ints["count"])
          count = 0;
      EXPECT_EQ(cpu.ints["rank"], cuda.ints["rank"]);
      EXPECT_EQ(cpu.ints["status"], cuda.ints["status"]);
    }
    if (isLarge(shape) && !isFull)
      continue;
    run("densify", states, (token + 1) % 3);
    expectNear(cpu.floats["out"], cuda.floats["out"], getTolerance(shape), "H");
    if (testing::Test::HasFailure())
      return;
  }
}

/// The largest element of `Q^T Q - I` of a state's rows: of the left sides, and where they
/// are singular vectors the right ones too.
double getOrthogonality(const LayerMemory &memory, int64_t state, int64_t rankBound) {
  const Shape &s = memory.shape;
  const float *rows = memory.floats.at("rows").data() + state * rankBound * (s.dk + s.dv);
  const int32_t rank = memory.ints.at("rank")[state];
  EXPECT_GT(rank, 0);
  auto getProduct = [&](int64_t i, int64_t j, int64_t first, int64_t size) {
    double sum = 0;
    for (int64_t c = first; c < first + size; ++c)
      sum += double(rows[i * (s.dk + s.dv) + c]) * rows[j * (s.dk + s.dv) + c];
    return std::abs(sum - (i == j ? 1 : 0));
  };
  double largest = 0;
  for (int64_t i = 0; i < rank; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      largest = std::max(largest, getProduct(i, j, s.dk, s.dv));
      if (std::string(s.core) == "svd")
        largest = std::max(largest, getProduct(i, j, 0, s.dk));
    }
  return largest;
}

class SparedScratch : public testing::TestWithParam<Shape> {};

/// Keys (or values) that nearly depend on each other, so that this side of a block is
/// orthogonalised a second time.
void makeNearlyParallel(std::vector<float> &values) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float((i * 7 % 13) + 1) / 8 + 1e-6f * values[i];
}

/// A state of two buffers, in the first of which `parallel` (keys or values) depend on each
/// other, on the CPU by the kernels of `module`.
LayerMemory runTwoBuffers(const PreparedModule &module, const Shape &shape, const char *parallel) {
  const int64_t slots = 2, states = slots * shape.heads;
  const int64_t rankBound = std::min(shape.dv, shape.dk) + shape.active + shape.buffer;
  LayerMemory memory(shape, slots, rankBound);
  auto jit = cpu::CpuJit::compile(module.get());
  if (!jit) {
    ADD_FAILURE() << llvm::toString(jit.takeError());
    return memory;
  }
  auto run = [&](llvm::StringRef role, int64_t programs) {
    for (ssk::KernelOp kernel : module.get().getOps<ssk::KernelOp>())
      if (kernel.getRole() == role)
        (*jit)->lookup(kernel.getName())(memory.getArguments(kernel).data(), ss_cpu_routines(), 0,
                                         programs);
  };
  std::mt19937 inputs(5);
  for (int token = 0; token < 2 * shape.buffer; ++token) {
    memory.setInputs(inputs, /*byChannel=*/false);
    if (token < shape.buffer)
      makeNearlyParallel(memory.floats[parallel]);
    run("decode", (slots + 1) * shape.heads);
    for (int32_t &count : memory.ints["count"])
      ++count;
    if ((token + 1) % shape.buffer != 0)
      continue;
    run("compact", states);
    memory.ints["count"].assign(slots, 0);
    for (int64_t state = 0; state < states; ++state)
      EXPECT_LE(getOrthogonality(memory, state, rankBound), 1e-5)
          << parallel << ", token " << token << ", state " << state;
  }
  run("densify", states);
  return memory;
}

// Orthonormal rows that are formed at once are rounded once more, and that is all.
TEST_P(SparedScratch, ChangesRoundingsAlone) {
  const Shape &shape = GetParam();
  PreparedModule whole(getGraph(shape), "builtin.module(ss-pipeline{device=cpu})");
  PreparedModule spared(getGraph(shape), "builtin.module(ss-pipeline{spare-scratch})");
  ASSERT_TRUE(whole && spared);
  for (const char *parallel : {"k", "v"}) {
    LayerMemory expected = runTwoBuffers(whole, shape, parallel);
    LayerMemory found = runTwoBuffers(spared, shape, parallel);
    EXPECT_EQ(expected.ints["status"], found.ints["status"]);
    expectNear(expected.floats["out"], found.floats["out"], 2e-5, "H");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cores, SparedScratch,
    testing::Values(Shape{"gdn", "softplus", "add, 1.0e-6", "fixed, 8", 4, 2, 32, 64, 8, 8},
                    Shape{"gdn", "softplus", "add, 1.0e-6", "fixed, 8", 4, 2, 32, 64, 8, 8, "qr"},
                    Shape{"mamba2", "softplus", "none", "fixed, 16", 2, 1, 32, 48, 16, 16},
                    Shape{"mamba2", "softplus", "none", "fixed, 16", 2, 1, 32, 48, 16, 16, "qr"}),
    [](const auto &info) {
      return std::string(info.param.type) + "_" + info.param.core;
    });

/// The first state of `memory` dense, of small random numbers.
void makeDense(LayerMemory &memory) {
  std::mt19937 generator(3);
  std::normal_distribution<float> normal;
  const Shape &s = memory.shape;
  for (int64_t i = 0; i < s.dk * s.dv; ++i)
    memory.floats["rows"][i] = normal(generator) / 8;
  memory.ints["rank"][0] = -1;
}

// Rows of a dense state go to parts as components do, beside states of few rows: fewer
// chunks than parts, and none.
TEST_P(Layer, DecodesDenseStatesByParts) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  Shape shape = GetParam();
  if (std::string(shape.storage) != "f32" || std::string(shape.core) != "svd" ||
      shape.options[0] != '\0' || shape.buffer < 4 || isLarge(shape))
    GTEST_SKIP() << "decodes do not depend on how a layer compacts, and dense rows of 16 bits "
                    "are seen elsewhere";
  PreparedModule module(getGraph(shape), "builtin.module(ss-pipeline)");
  ASSERT_TRUE(module);
  BothBackEnds both(module);
  const int64_t slots = 2, rankBound = shape.dk * shape.dv / (shape.dk + shape.dv) + 1;
  LayerMemory cpu(shape, slots, rankBound);
  makeDense(cpu);
  std::normal_distribution<float> normal;
  std::mt19937 generator(4);
  for (size_t state = 1; state < cpu.ints["rank"].size(); ++state) {
    cpu.ints["rank"][state] = int32_t(state * 5 % 12);
    for (int64_t i = 0; i < rankBound; ++i)
      cpu.floats["weights"][state * rankBound + i] = 1;
    for (int64_t i = 0; i < rankBound * (shape.dk + shape.dv); ++i)
      cpu.floats["rows"][state * rankBound * (shape.dk + shape.dv) + i] = normal(generator) / 8;
  }
  LayerMemory cuda = cpu;
  for (ssk::KernelOp kernel : module.get().getOps<ssk::KernelOp>()) {
    if (kernel.getRole() != "decode")
      continue;
    for (int token = 0; token < 3; ++token) {
      LayerMemory byParts = cuda;
      const int64_t programs = (slots + 1) * shape.heads;
      const std::string name = kernel.getName().str();
      both.run(name, cpu.getArguments(kernel), cuda.getArguments(kernel), programs, token);
      both.getEmulated().run(name + "_parts", byParts.getArguments(kernel).data(), programs, token);
      expectNear(cpu.floats["y"], cuda.floats["y"], getTolerance(shape), "y");
      for (const char *written : {"y", "buffer_k", "buffer_u", "buffer_g"})
        EXPECT_TRUE(haveSameBits(cuda.floats[written], byParts.floats[written])) << written;
      for (LayerMemory *memory : {&cpu, &cuda})
        for (int32_t &count : memory->ints["count"])
          ++count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, Layer,
    testing::Values(Shape{"gdn", "softplus", "add, 1.0e-6", "relative, 1.0e-3", 4, 2, 32, 64, 4, 4},
                    Shape{"mamba2", "softplus", "none", "energy, 9.99e-1", 2, 1, 20, 32, 4, 4},
                    Shape{"kda", "bounded_channel, -5.0", "max, 1.0e-12", "fixed, 8", 2, 2, 32, 32, 8, 8},
                    Shape{"gdn", "softplus", "add, 1.0e-6", "relative, 1.0e-3", 4, 2, 32, 64, 4, 4, "qr"},
                    Shape{"mamba2", "softplus", "none", "energy, 9.99e-1", 2, 1, 20, 32, 4, 4, "qr"},
                    Shape{"kda", "bounded_channel, -5.0", "max, 1.0e-12", "fixed, 8", 2, 2, 32, 32, 8, 8, "qr"},
                    Shape{"gdn", "softplus", "add, 1.0e-6", "relative, 1.0e-2", 4, 2, 32, 64, 4, 4, "qr", "f16"},
                    Shape{"mamba2", "softplus", "none", "relative, 1.0e-2", 2, 1, 20, 32, 4, 4, "svd", "bf16"},
                    Shape{"kda", "bounded_channel, -5.0", "max, 1.0e-12", "fixed, 8", 2, 2, 30, 33, 8, 8, "qr", "f16"},
                    // Squares beyond float32, above and below.
                    Shape{"gdn", "softplus", "add, 1.0e-6", "relative, 1.0e-3", 4, 2, 32, 64, 4, 4, "svd", "f32", 5e37f},
                    Shape{"kda", "bounded_channel, -5.0", "max, 1.0e-36", "fixed, 8", 2, 2, 32, 32, 8, 8, "svd", "f32", 1e-28f},
                    // Ranks below the number of rows in flight.
                    Shape{"kda", "bounded_channel, -5.0", "max, 1.0e-12", "fixed, 1", 2, 2, 24, 20, 1, 1},
                    Shape{"kda", "bounded_channel, -5.0", "max, 1.0e-12", "fixed, 3", 2, 2, 24, 20, 3, 3, "qr", "bf16"},
                    // With orthonormal rows formed at once.
                    Shape{"gdn", "softplus", "add, 1.0e-6", "relative, 1.0e-3", 4, 2, 32, 64, 4, 4, "svd", "f32", 1, "spare-scratch"},
                    Shape{"mamba2", "softplus", "none", "energy, 9.99e-1", 2, 1, 20, 32, 4, 4, "qr", "f32", 1, "spare-scratch"},
                    // Blocks that have to spare scratch, and one that has no room to pad rows.
                    Shape{"gdn", "softplus", "add, 1.0e-6", "fixed, 32", 1, 1, 128, 128, 32, 32},
                    Shape{"kda", "bounded_channel, -5.0", "max, 1.0e-12", "fixed, 32", 1, 1, 256, 256, 32, 32, "qr"}),
    [](const auto &info) {
      return std::string(info.param.type) + "_" + info.param.core + "_" + info.param.storage +
             (info.param.keys > 1 ? "_large_keys" : info.param.keys < 1 ? "_small_keys" : "") +
             (info.param.active < 4 ? "_low_rank" : isLarge(info.param) ? "_large_block" : "") +
             (info.param.options[0] ? "_spare" : "");
    });

} // namespace
