//===- PackageLayersTest.cpp - How a package keeps its states -------------===//

#include "PackageLayers.h"

#include <gtest/gtest.h>

using namespace ss_tools;

namespace {

std::string layerText(const std::string &name, const std::string &type,
                      const std::string &form, const std::string &storage,
                      const std::string &policy =
                          R"({"kind": "relative", "value": 0.03})") {
  return R"({"name": ")" + name + R"(", "type": ")" + type + R"(", "form": ")" +
         form + R"(", "storage": ")" + storage +
         R"(", "rounding": "nearest", "core": "qr", "active": 8, "buffer": 8,
         "policy": )" + policy + "}";
}

std::string descriptionOf(const std::string &layers) {
  return describe(parsePackageLayers(R"({"layers": [)" + layers + "]}"));
}

TEST(PackageLayers, AreDescribedInOnePhraseWhereAllAreAlike) {
  EXPECT_EQ(descriptionOf(layerText("a", "gdn", "factored", "f32") + "," +
                          layerText("b", "kda", "factored", "f32")),
            "relative:0.03, core qr, active 8, buffer 8, storage f32");
}

TEST(PackageLayers, SayTheirRoundingAndTheirSink) {
  PackageLayer layer =
      parsePackageLayers(R"({"layers": [)" +
                         layerText("a", "gdn", "sink", "fp8",
                                   R"({"kind": "fixed", "value": 16.0})") +
                         "]}")[0];
  layer.rounding = "stochastic";
  EXPECT_EQ(describe(layer), "sink:16, core qr, active 8, buffer 8, storage "
                             "fp8, rounding stochastic");
}

// No compaction has a policy, a core or active components there.
TEST(PackageLayers, OfDenseFormSayWhatTheyHave) {
  EXPECT_EQ(descriptionOf(layerText("a", "gdn", "dense", "f16")),
            "dense, storage f16");
  EXPECT_EQ(descriptionOf(layerText("a", "gdn", "deferred", "f32")),
            "deferred, buffer 8, storage f32");
}

// The first layer does not speak for all.
TEST(PackageLayers, ThatDifferAreDescribedByType) {
  EXPECT_EQ(descriptionOf(layerText("a", "gdn", "factored", "fp8") + "," +
                          layerText("b", "mamba2", "factored", "fp8") + "," +
                          layerText("c", "kda", "factored", "f16") + "," +
                          layerText("d", "gdn", "factored", "fp8")),
            "gdn and mamba2: relative:0.03, core qr, active 8, buffer 8, "
            "storage fp8; kda: relative:0.03, core qr, active 8, buffer 8, "
            "storage f16");
}

TEST(PackageLayers, OfOneTypeThatDifferAreDescribedByName) {
  EXPECT_EQ(descriptionOf(layerText("a", "gdn", "dense", "f32") + "," +
                          layerText("b", "gdn", "dense", "f16") + "," +
                          layerText("c", "kda", "dense", "f16")),
            "a: dense, storage f32; b and kda: dense, storage f16");
}

TEST(PackageLayers, AreNoneInWhatIsNoManifest) {
  for (const char *text : {"", "[1]", "{", R"({"layers": 3})",
                           R"({"layers": [3]})"})
    EXPECT_TRUE(parsePackageLayers(text).empty()) << text;
  EXPECT_TRUE(readPackageLayers("/nowhere/at/all").empty());
}

} // namespace
