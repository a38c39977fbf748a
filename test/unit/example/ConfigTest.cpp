//===- ConfigTest.cpp - Good and damaged model configurations -------------===//

#include "Config.h"
#include "TemporaryFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace tiny_hybrid;
using nlohmann::json;

namespace {

json goodConfig() {
  return json::parse(
      tiny_hybrid_test::readFile(TINY_HYBRID_MODEL "/config.json"));
}

std::string errorOf(const json &config) {
  auto parsed = Config::parse(config.dump(), "config.json");
  return parsed ? "parsed" : parsed.error();
}

TEST(Config, ReadsTheModel) {
  auto config = Config::load(TINY_HYBRID_MODEL "/config.json");
  ASSERT_TRUE(config) << config.error();
  EXPECT_EQ(config->layers.size(), 8u);
  EXPECT_EQ(config->layers[1], LayerKind::Mamba2);
  EXPECT_EQ(config->mamba2.heads, 4);
  EXPECT_EQ(config->mamba2.keyHeads, 1);
  EXPECT_EQ(config->mamba2.dv, 80);
  EXPECT_EQ(config->mamba2.dk, 128);
  EXPECT_EQ(config->kda.gateRank, 64);
  EXPECT_EQ(config->attention.headDim, 64);
}

TEST(Config, NamesTheFileThatIsMissing) {
  EXPECT_EQ(Config::load("/no/such/config.json").error(),
            "/no/such/config.json: cannot read the model's configuration, "
            "expected a readable config.json");
}

TEST(Config, ReadsNoMoreThanAConfigurationCanHave) {
  EXPECT_EQ(Config::load("/dev/zero").error(),
            "/dev/zero: found more than 1048576 bytes, expected a config.json");
}

TEST(Config, RejectsTextThatIsNotAnObject) {
  EXPECT_EQ(Config::parse("{", "c").error(),
            "c: found no valid JSON at byte 2, expected one object");
  EXPECT_EQ(Config::parse("3", "c").error(),
            "c: found 3, expected one JSON object");
}

TEST(Config, RejectsUnknownLayerTypes) {
  json config = goodConfig();
  config["layers"][2] = "rwkv";
  EXPECT_EQ(errorOf(config), "config.json: key 'layers[2]': found \"rwkv\", "
                             "expected 'gdn', 'mamba2', 'kda' or 'attention'");
  config["layers"] = json::array();
  EXPECT_EQ(errorOf(config), "config.json: key 'layers': found [], expected a "
                             "list of 1 to 1024 layer types");
}

TEST(Config, RejectsMissingAndUnknownKeys) {
  json config = goodConfig();
  config["gdn"].erase("head_k_dim");
  EXPECT_EQ(errorOf(config), "config.json: key 'gdn.head_k_dim': not found, "
                             "expected by this model");
  config = goodConfig();
  config.erase("kda");
  EXPECT_EQ(errorOf(config),
            "config.json: key 'kda': not found, expected by this model");
  config = goodConfig();
  config["num_experts"] = 8;
  EXPECT_EQ(errorOf(config), "config.json: key 'num_experts': found, expected "
                             "no such key in a byte-hybrid model");
}

TEST(Config, RejectsSizesOutOfRange) {
  for (const json &value :
       {json(0), json(-1), json(2.5), json("2"), json(1ull << 40)}) {
    json config = goodConfig();
    config["gdn"]["num_heads"] = value;
    EXPECT_EQ(errorOf(config), "config.json: key 'gdn.num_heads': found " +
                                   value.dump() +
                                   ", expected an integer from 1 to 1048576");
  }
  json config = goodConfig();
  config["rms_norm_eps"] = 0;
  EXPECT_EQ(errorOf(config), "config.json: key 'rms_norm_eps': found 0, "
                             "expected a positive number");
}

TEST(Config, RejectsHeadsThatDoNotDivide) {
  json config = goodConfig();
  config["mamba2"]["num_groups"] = 3;
  EXPECT_EQ(errorOf(config), "config.json: key 'mamba2.num_heads': found 4, "
                             "expected a multiple of num_groups = 3");
  config = goodConfig();
  config["attention"]["head_dim"] = 63;
  EXPECT_EQ(errorOf(config),
            "config.json: key 'attention.head_dim': found 63, expected an even "
            "number, since the rotary embedding turns pairs");
}

TEST(Config, RejectsOtherModels) {
  json config = goodConfig();
  config["model_type"] = "qwen3_next";
  EXPECT_EQ(errorOf(config), "config.json: key 'model_type': found "
                             "\"qwen3_next\", expected 'byte-hybrid'");
  config = goodConfig();
  config["vocab_size"] = 512;
  EXPECT_EQ(errorOf(config), "config.json: key 'vocab_size': found 512, "
                             "expected 256: tokens are bytes");
}

} // namespace
