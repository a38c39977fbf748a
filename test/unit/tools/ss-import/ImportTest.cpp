//===- ImportTest.cpp - ss-import as a library ----------------------------===//

#include "tools/ss-import/Import.h"

#include "dialect/ss/SS.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace sinkstate;

namespace {

/// Calls the import on a context that knows no dialect, and keeps its errors.
struct ImportTest : testing::Test {
  ss::ModelOp model(FailureOr<OwningOpRef<ModuleOp>> result) {
    if (failed(result))
      return {};
    module = std::move(*result);
    return *module->getOps<ss::ModelOp>().begin();
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler{&context, [this](Diagnostic &diagnostic) {
                                    errors.push_back(diagnostic.str());
                                    return success();
                                  }};
  OwningOpRef<ModuleOp> module;
};

TEST_F(ImportTest, ReadsTheExampleModel) {
  ss::ModelOp tiny = model(importConfig(SS_SOURCE_DIR "/examples/tiny-hybrid",
                                        ImportOptions(), &context));
  ASSERT_TRUE(tiny);
  EXPECT_EQ(tiny.getSymName(), "tiny_hybrid");
  EXPECT_EQ(std::distance(tiny.getLayers().begin(), tiny.getLayers().end()), 6);
  ss::LayerOp mamba2 = tiny.lookupLayer("layer1");
  ASSERT_TRUE(mamba2);
  EXPECT_EQ(mamba2.getRankBound(), 80 + 8 + 8);
  EXPECT_TRUE(errors.empty());
}

TEST_F(ImportTest, GivesLayersOfATypeTheirStorage) {
  ImportOptions options;
  auto storages = parseStorages("fp8+kda=f16+mamba2=f32");
  ASSERT_TRUE(bool(storages)) << llvm::toString(storages.takeError());
  options.storage = *storages;
  options.rounding = ss::Rounding::stochastic;
  ss::ModelOp tiny = model(importConfig(SS_SOURCE_DIR "/examples/tiny-hybrid",
                                        options, &context));
  ASSERT_TRUE(tiny) << (errors.empty() ? "" : errors[0]);
  for (ss::LayerOp layer : tiny.getLayers()) {
    const ss::Storage expected =
        layer.getType() == ss::LayerType::gdn    ? ss::Storage::fp8
        : layer.getType() == ss::LayerType::kda ? ss::Storage::f16
                                                : ss::Storage::f32;
    EXPECT_EQ(layer.getStorage(), expected);
    EXPECT_EQ(layer.getRoundingKind(), expected == ss::Storage::f32
                                           ? ss::Rounding::nearest
                                           : ss::Rounding::stochastic);
  }
}

TEST_F(ImportTest, RefusesStoragesThatSayNothing) {
  for (const char *text : {"", "f64", "kda=f16", "fp8+", "fp8+kda", "fp8+f16",
                           "fp8,kda=f16", "fp8+rwkv=f16", "fp8+kda=f64"}) {
    auto storages = parseStorages(text);
    ASSERT_FALSE(bool(storages)) << text;
    EXPECT_EQ(llvm::toString(storages.takeError()),
              "storage is '" + std::string(text) +
                  "', expected f32, f16, bf16 or fp8, and behind it "
                  "+TYPE=STORAGE for layers of a type (mamba2, gdn or kda), such "
                  "as fp8+kda=f16");
  }
  auto twice = parseStorages("fp8+kda=f16+kda=f32");
  ASSERT_FALSE(bool(twice));
  EXPECT_NE(llvm::toString(twice.takeError()).find("which names kda twice"),
            std::string::npos);
  ImportOptions options;
  options.storage = llvm::cantFail(parseStorages("f16+gdn=fp8"));
  EXPECT_TRUE(failed(importPreset("Kimi-K3", options, &context)));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0], "has no layer of type gdn, expected the storage of a type "
                       "that it has");
}

TEST_F(ImportTest, AFixedRankDecidesActiveAndBuffer) {
  ImportOptions options;
  ASSERT_FALSE(setPolicy(options, "fixed:16"));
  ss::ModelOp kimi = model(importPreset("Kimi-K3", options, &context));
  ASSERT_TRUE(kimi);
  ss::LayerOp layer = kimi.lookupLayer("layer0");
  EXPECT_EQ(layer.getActive(), 16);
  EXPECT_EQ(layer.getBuffer(), 16);
  EXPECT_EQ(layer.getRankBound(), 32);
}

TEST_F(ImportTest, EveryPresetImports) {
  for (const Preset &preset : getPresets())
    EXPECT_TRUE(model(importPreset(preset.name, ImportOptions(), &context)))
        << preset.name.str();
  EXPECT_TRUE(errors.empty());
}

TEST_F(ImportTest, AWrongOptionIsOneError) {
  ImportOptions options;
  options.buffer = 0;
  EXPECT_FALSE(model(importPreset("Kimi-K3", options, &context)));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0], "'buffer' is 0, expected at least 1");
}

TEST_F(ImportTest, AMissingFileIsOneError) {
  EXPECT_FALSE(
      model(importConfig("/no/such/model", ImportOptions(), &context)));
  EXPECT_EQ(errors.size(), 1u);
}

TEST(SetPolicy, ReadsKindAndValue) {
  ImportOptions options;
  ASSERT_FALSE(setPolicy(options, "energy:0.999"));
  EXPECT_EQ(options.policyKind, ss::PolicyKind::energy);
  EXPECT_EQ(options.policyValue, 0.999);
}

TEST(SetPolicy, TakesASinkAsFormAndFixedRank) {
  ImportOptions options;
  ASSERT_FALSE(setPolicy(options, "sink:8"));
  EXPECT_EQ(options.policyKind, ss::PolicyKind::fixed);
  EXPECT_EQ(options.policyValue, 8);
  EXPECT_EQ(options.form, ss::Form::sink);
}

TEST(SetPolicy, LeavesTheOptionsWhenWrong) {
  for (const char *text : {"", "relative", "relative:", "relative:x",
                           "sparse:1", "sink", "sink:x", "relative:nan", "relative:0.1:2"}) {
    ImportOptions options;
    llvm::Error error = setPolicy(options, text);
    EXPECT_TRUE(static_cast<bool>(error)) << text;
    llvm::consumeError(std::move(error));
    EXPECT_EQ(options.policyKind, ss::PolicyKind::relative);
    EXPECT_EQ(options.policyValue, 0.03);
    EXPECT_EQ(options.form, ss::Form::factored);
  }
}

} // namespace
