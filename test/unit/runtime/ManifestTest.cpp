//===- ManifestTest.cpp - What a manifest may and may not say -------------===//

#include "EngineUnderTest.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>

using namespace sinkstate;
using namespace sinkstate::test;
using Json = nlohmann::json;

namespace {

class Manifest : public testing::Test {
protected:
  Manifest() : kernels({gdnLayer(2, 2, 16, 8)}) {
    manifest = Json::parse(kernels.manifest());
  }

  ss_result load(const std::string &text) {
    ss_package *package = nullptr;
    ss_result result = ss_package_from_memory(
        text.data(), text.size(), &KernelSet::lookup, &kernels, &package);
    EXPECT_EQ(package != nullptr, result == SS_OK);
    ss_package_close(package);
    return result;
  }

  /// The manifest with one thing changed fails with this line.
  void expect(const std::function<void(Json &)> &change, ss_result result,
              const std::string &line) {
    Json changed = manifest;
    change(changed);
    EXPECT_EQ(load(changed.dump()), result);
    EXPECT_EQ(ss_last_error(), line);
  }
  void expectMalformed(const std::function<void(Json &)> &change,
                       const std::string &line) {
    expect(change, SS_MALFORMED_PACKAGE,
           "manifest.json: " + line + ": build the package again");
  }
  static Json &layer(Json &m) { return m["layers"][0]; }

  KernelSet kernels;
  Json manifest;
};

TEST_F(Manifest, TheUnchangedOneLoads) {
  EXPECT_EQ(load(manifest.dump()), SS_OK);
}

TEST_F(Manifest, MustBeJson) {
  EXPECT_EQ(load("{\"format\": "), SS_MALFORMED_PACKAGE);
  std::string line = ss_last_error();
  EXPECT_EQ(line.find("manifest.json: it is not JSON ("), 0u) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(load("[]"), SS_MALFORMED_PACKAGE);
  EXPECT_STREQ(ss_last_error(), "manifest.json: the top level is array, "
                                "expected an object: build the package again");
  EXPECT_EQ(load(""), SS_MALFORMED_PACKAGE);
  EXPECT_EQ(load(std::string(100000, '[')), SS_MALFORMED_PACKAGE);
}

TEST_F(Manifest, Versions) {
  expectMalformed([](Json &m) { m["format"] = "zip"; },
                  "field 'format' is 'zip', expected 'sinkstate-package'");
  expect([](Json &m) { m["version"] = 2; }, SS_VERSION_MISMATCH,
         "manifest.json: package version 2, expected version 1: build the "
         "package with the compiler of this runtime (0.1.0 (abi 4))");
  expect([](Json &m) { m["abi"] = 7; }, SS_VERSION_MISMATCH,
         "manifest.json: kernel ABI 7, expected 4: build the package with the "
         "compiler of this runtime (0.1.0 (abi 4))");
  expect([](Json &m) { layer(m)["storage"] = "fp4"; }, SS_VERSION_MISMATCH,
         "manifest.json: layer 'layer0' stores its rows as 'fp4', expected "
         "'f32', 'f16', 'bf16' or 'fp8', the storages of this runtime: compile the "
         "graph with one of them");
}

TEST_F(Manifest, Fields) {
  expectMalformed([](Json &m) { layer(m).erase("heads"); },
                  "layer 'layer0': field 'heads' is missing, expected an "
                  "integer");
  expectMalformed([](Json &m) { layer(m)["heads"] = "two"; },
                  "layer 'layer0': field 'heads' is of type string, expected "
                  "an integer");
  expectMalformed([](Json &m) { layer(m)["heads"] = 2.5; },
                  "layer 'layer0': field 'heads' is of type number, expected "
                  "an integer");
  expectMalformed([](Json &m) { layer(m)["dv"] = 0; },
                  "layer 'layer0': field 'dv' is 0, expected 1 to 4096");
  expectMalformed([](Json &m) { layer(m)["dk"] = UINT64_MAX; },
                  "layer 'layer0': field 'dk' is 9223372036854775807, "
                  "expected 1 to 4096");
  expectMalformed([](Json &m) { layer(m)["key_heads"] = 3; },
                  "layer 'layer0': 2 heads over 3 key heads, expected a "
                  "multiple");
  expectMalformed([](Json &m) { layer(m)["phase"] = 8; },
                  "layer 'layer0': field 'phase' is 8, expected 0 to 7");
  expectMalformed([](Json &m) { layer(m)["compacts"] = "late"; },
                  "layer 'layer0': compacts 'late', expected 'before' or "
                  "'after'");
  expectMalformed(
      [](Json &m) {
        layer(m)["draft"] = 2, layer(m)["compacts"] = "after";
      },
      "layer 'layer0': compacts 'after' with 2 draft tokens, expected "
      "'before'");
  expectMalformed([](Json &m) { layer(m)["rank"] = 23; },
                  "layer 'layer0': rank 23 rows per state, expected at least "
                  "24");
  expectMalformed([](Json &m) { layer(m)["form"] = "sparse"; },
                  "layer 'layer0': form 'sparse', expected 'factored', 'dense', "
                  "'deferred' or 'sink'");
  expectMalformed(
      [](Json &m) { layer(m)["form"] = "deferred", layer(m)["buffer"] = 0; },
      "layer 'layer0': field 'buffer' is 0, expected 1 to 1024");
  expectMalformed([](Json &m) { layer(m)["has_beta"] = 1; },
                  "layer 'layer0': field 'has_beta' is of type number, "
                  "expected true or false");
  expectMalformed([](Json &m) { m["layers"] = Json::array(); },
                  "'layers' is empty, expected at least one layer");
  expectMalformed([](Json &m) { m["layers"].push_back(m["layers"][0]); },
                  "layer 'layer0' appears twice");
}

TEST_F(Manifest, Policies) {
  expectMalformed([](Json &m) { layer(m)["policy"]["kind"] = "magic"; },
                  "layer 'layer0', 'policy': kind 'magic', expected "
                  "'relative', 'fixed', 'energy' or 'budget'");
  expectMalformed([](Json &m) { layer(m)["policy"]["value"] = -0.5; },
                  "layer 'layer0', 'policy': value -0.5 of kind 'relative', "
                  "expected 0 to 1");
  expectMalformed(
      [](Json &m) {
        layer(m)["policy"] = {{"kind", "budget"}, {"value", 100}};
      },
      "layer 'layer0': a budget of 100 bytes per state, expected at least 868 "
      "for the buffer and one component");
}

TEST_F(Manifest, Kernels) {
  expectMalformed(
      [](Json &m) { layer(m)["kernels"]["decode"] = "missing"; },
      "layer 'layer0', 'kernels': the decode kernel 'missing' is not in "
      "'kernels'");
  expectMalformed(
      [](Json &m) { layer(m)["kernels"]["decode"] = "layer0_compact"; },
      "layer 'layer0', 'kernels': kernel 'layer0_compact' has role 'compact', "
      "expected 'decode'");
  expectMalformed([](Json &m) { layer(m)["rounding"] = "up"; },
                  "layer 'layer0': rounding 'up', expected 'nearest' or "
                  "'stochastic'");
  expectMalformed([](Json &m) { m["kernels"][0]["role"] = "prefill"; },
                  "kernel 'layer0_decode': role 'prefill', expected 'decode', "
                  "'compact', 'densify' or 'init'");
  expectMalformed([](Json &m) { m["kernels"][1]["name"] = "layer0_decode"; },
                  "kernel 'layer0_decode' appears twice");
  expectMalformed(
      [](Json &m) { m["kernels"][0]["args"][0]["name"] = "cows"; },
      "kernel 'layer0_decode', argument 0 is named 'cows', expected a name "
      "that this runtime binds (such as 'rows')");
  expectMalformed(
      [](Json &m) { m["kernels"][0]["args"][0]["type"] = "f64*"; },
      "kernel 'layer0_decode', argument 0 'rows' has type 'f64*', expected "
      "'f32*', 'f16*', 'bf16*' or 'fp8*'");
  expectMalformed(
      [](Json &m) { m["kernels"][0]["args"][0]["type"] = "f16*"; },
      "kernel 'layer0_decode' takes 'rows' in f16, expected f32, the storage "
      "of layer 'layer0'");
  expectMalformed(
      [](Json &m) {
        m["kernels"][1]["args"][0] = {{"name", "q"}, {"type", "f32*"}};
      },
      "kernel 'layer0_compact' binds 'q', which the compact kernel of the "
      "factored layer 'layer0' does not have");
  expectMalformed(
      [](Json &m) {
        m["kernels"][1]["args"].push_back({{"name", "rows"}, {"type", "f32*"}});
      },
      "kernel 'layer0_compact' binds 'rows' twice");
  expectMalformed([](Json &m) { layer(m)["has_beta"] = false; },
                  "kernel 'layer0_decode' binds 'beta', but layer 'layer0' has "
                  "has_beta = false");
  expect([](Json &m) { m["kernels"][2]["name"] = "other"; },
         SS_MALFORMED_PACKAGE,
         "manifest.json: layer 'layer0', 'kernels': the densify kernel "
         "'layer0_densify' is not in 'kernels': build the package again");
  expect(
      [](Json &m) {
        m["kernels"][2]["name"] = "other";
        layer(m)["kernels"]["densify"] = "other";
      },
      SS_NOT_FOUND,
      "the lookup function has no kernel 'other', expected every kernel of "
      "the manifest: compile the graph and the manifest together");
}

TEST_F(Manifest, KernelsWithPartsHaveOneProgramABlock) {
  const std::string name = manifest["kernels"][0]["name"];
  Json changed = manifest;
  changed["kernels"][0]["parts"] = 4;
  changed["kernels"][0]["programs_per_block"] = 1;
  EXPECT_EQ(load(changed.dump()), SS_OK);
  expectMalformed(
      [](Json &m) {
        m["kernels"][0]["parts"] = 4;
        m["kernels"][0]["programs_per_block"] = 2;
      },
      "kernel '" + name +
          "': 4 parts and 2 programs a block, expected 1 program a block with "
          "parts");
  expectMalformed(
      [](Json &m) {
        m["kernels"][0]["warps"] = 4;
        m["kernels"][0]["programs_per_block"] = 2;
      },
      "kernel '" + name +
          "': 4 warps a program, 2 programs a block and 1 parts, expected 1 "
          "program a block and 1 part");
  expectMalformed(
      [](Json &m) {
        m["kernels"][0]["parts"] = 4;
        m["kernels"][0]["programs_per_block"] = 1;
        m["kernels"][0]["loops"] = true;
      },
      "kernel '" + name +
          "': 4 parts and a loop over programs, expected one of them");
}

TEST_F(Manifest, QuotedTextStaysOnOneLine) {
  expectMalformed([](Json &m) { layer(m)["form"] = "a\nb\x01"; },
                  "layer 'layer0': form 'a b ', expected 'factored', 'dense', "
                  "'deferred' or 'sink'");
}

// Every field in turn is missing, or of every other type: a line, no crash.
TEST_F(Manifest, AnyFieldMayBeMissingOrWrong) {
  for (const char *place : {"", "/layers/0", "/layers/0/policy",
                            "/layers/0/kernels", "/kernels/0",
                            "/kernels/0/args/0"}) {
    const Json::json_pointer pointer(place);
    const Json object = manifest.at(pointer);
    for (const auto &field : object.items()) {
      Json without = manifest;
      without.at(pointer).erase(field.key());
      load(without.dump());
      for (const Json &value :
           {Json(nullptr), Json(-1), Json(1e300), Json("x"), Json(true),
            Json::array({Json(nullptr)}), Json::object()}) {
        Json wrong = manifest;
        wrong.at(pointer)[field.key()] = value;
        load(wrong.dump());
        EXPECT_EQ(std::string(ss_last_error()).find('\n'), std::string::npos);
      }
    }
  }
}

} // namespace
