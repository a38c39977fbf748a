//===- OptionsTest.cpp - Good and bad command lines -----------------------===//

#include "Options.h"

#include "sinkstate/sinkstate.h"

#include <gtest/gtest.h>

#include <utility>

using namespace ss_run;

namespace {

OptionTexts good() {
  OptionTexts texts;
  texts.model = "model";
  texts.text = "text";
  return texts;
}

/// The error after setting one option.
std::string errorWith(std::string OptionTexts::*option,
                      const std::string &value) {
  OptionTexts texts = good();
  texts.*option = value;
  auto options = checkOptions(texts);
  return options ? "accepted" : options.error();
}

TEST(Options, HaveDefaults) {
  auto options = checkOptions(good());
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(toString(options->policy), "relative:0.03");
  EXPECT_EQ(options->tokens, 1024);
  EXPECT_EQ(options->active, 8);
  EXPECT_EQ(options->buffer, 8);
  EXPECT_EQ(options->consolidateEvery, 4);
  EXPECT_TRUE(options->denseFallback);
  EXPECT_EQ(options->dense, DenseRun::Compiled);
}

TEST(Options, AcceptEveryValue) {
  OptionTexts texts = good();
  texts.policy = "energy:0.999";
  texts.tokens = "77";
  texts.active = "4";
  texts.buffer = "16";
  texts.consolidate = "off";
  texts.batch = "64";
  texts.threads = "2";
  texts.generate = "10";
  texts.seed = "18446744073709551615";
  texts.denseFallback = "off";
  texts.dense = "reference";
  auto options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->policy.kind, PolicyKind::Energy);
  EXPECT_EQ(options->policy.value, 0.999);
  EXPECT_EQ(options->tokens, 77);
  EXPECT_EQ(options->active, 4);
  EXPECT_EQ(options->buffer, 16);
  EXPECT_EQ(options->consolidateEvery, 0);
  EXPECT_EQ(options->batch, 64);
  EXPECT_EQ(options->threads, 2);
  EXPECT_EQ(options->generate, 10);
  EXPECT_EQ(options->seed, UINT64_MAX);
  EXPECT_FALSE(options->denseFallback);
  EXPECT_EQ(options->dense, DenseRun::Reference);
}

TEST(Options, LevelsOfTheLogAreTheLibrarys) {
  EXPECT_EQ(checkOptions(good())->log, SS_LOG_OFF);
  for (auto [name, level] : {std::pair("off", SS_LOG_OFF),
                             {"error", SS_LOG_ERROR},
                             {"warning", SS_LOG_WARNING},
                             {"info", SS_LOG_INFO},
                             {"debug", SS_LOG_DEBUG}}) {
    OptionTexts texts = good();
    texts.log = name;
    EXPECT_EQ(checkOptions(texts)->log, level) << name;
  }
  EXPECT_EQ(errorWith(&OptionTexts::log, "loud"),
            "--log: found 'loud', expected off, error, warning, info or debug");
}

TEST(Options, FixedRankSetsActiveAndBuffer) {
  OptionTexts texts = good();
  texts.policy = "fixed:16";
  auto options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->active, 16);
  EXPECT_EQ(options->buffer, 16);
  texts.buffer = "8";
  EXPECT_EQ(checkOptions(texts).error(),
            "--buffer: found 8, expected 16 or no such option with --policy "
            "fixed:16");
}

TEST(Options, TakeWhatKernelsAreMadeOf) {
  OptionTexts texts = good();
  texts.policy = "budget:1234567";
  texts.core = "qr";
  texts.buffer = "16";
  auto options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->policy.kind, PolicyKind::Budget);
  EXPECT_EQ(options->core, Core::Qr);
  EXPECT_EQ(errorWith(&OptionTexts::core, "lu"),
            "--core: found 'lu', expected svd or qr");
  texts.storage = "bf16";
  options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(toString(options->storage), "bf16");
  EXPECT_EQ(errorWith(&OptionTexts::storage, "f64"),
            "--storage: found 'f64', expected f32, f16, bf16 or fp8, and behind "
            "it +TYPE=STORAGE once for layers of type gdn, mamba2 or kda");
  texts.storage = "fp8";
  texts.rounding = "stochastic";
  options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->rounding, Rounding::Stochastic);
  EXPECT_FALSE(options->denseFallback);
  EXPECT_FALSE(options->denseFallbackGiven);
  texts.denseFallback = "on";
  options = checkOptions(texts);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error(), "--dense-fallback: found 'on' with storage fp8, whose "
                             "rows have no dense form, expected off, or another "
                             "--storage");
  EXPECT_EQ(errorWith(&OptionTexts::rounding, "up"),
            "--rounding: found 'up', expected nearest or stochastic");
  EXPECT_EQ(errorWith(&OptionTexts::rounding, "stochastic"),
            "--rounding: found 'stochastic' with storage f32, which rounds "
            "nothing, expected a --storage of f16, bf16 or fp8");
}

TEST(Options, HaveStoragesByLayerType) {
  OptionTexts texts = good();
  texts.storage = "fp8+kda=f16+mamba2=f32";
  texts.rounding = "stochastic";
  auto options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(toString(options->storage), texts.storage);
  EXPECT_EQ(options->storage.others, Storage::FP8);
  EXPECT_TRUE(options->storage.has(Storage::F16));
  EXPECT_FALSE(options->storage.has(Storage::BF16));
  EXPECT_TRUE(options->denseFallback) << "rows of 16 bits have a dense form";
  texts.denseFallback = "on";
  EXPECT_TRUE(checkOptions(texts));
  texts.storage = "f32+kda=f32";
  EXPECT_EQ(checkOptions(texts).error(),
            "--rounding: found 'stochastic' with storage f32, which rounds "
            "nothing, expected a --storage of f16, bf16 or fp8");
  for (const char *wrong : {"fp8,kda=f16", "kda=f16", "fp8+", "fp8+kda", "+fp8",
                            "fp8+rwkv=f16", "fp8+kda=f64", "fp8+kda=",
                            "fp8+kda=f16+kda=f32", "fp8+f16"})
    EXPECT_NE(errorWith(&OptionTexts::storage, wrong)
                  .find("--storage: found '" + std::string(wrong) + "', expected"),
              std::string::npos)
        << wrong;
}

TEST(Options, DescribeWhatTheEngineDoes) {
  OptionTexts texts = good();
  EXPECT_EQ(describeEngine(*checkOptions(texts)),
            "consolidation every 4 compactions, dense fallback on");
  texts.consolidation = "asynchronous";
  texts.denseFallback = "off";
  auto options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(describeEngine(*options), "asynchronous consolidation every 4 "
                                      "compactions, dense fallback off");
  EXPECT_STREQ(consolidationName(*options), "asynchronous");
  EXPECT_TRUE(options->denseFallbackGiven);
  options->consolidateEvery = 0;
  options->rowCapacity = 64;
  EXPECT_EQ(describeEngine(*options),
            "no consolidation, dense fallback off, 64 rows a state");
  EXPECT_STREQ(consolidationName(*options), "off");
}

TEST(Options, ResolveDefaultsByDevice) {
  OptionTexts texts = good();
  texts.device = "cuda:2";
  auto options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->device, Device::Cuda);
  EXPECT_EQ(options->deviceOrdinal, 2);
  EXPECT_EQ(deviceName(*options), "cuda:2");
  EXPECT_TRUE(options->denseFallback);
  EXPECT_EQ(options->consolidateEvery, 0);
  texts.rowCapacity = "64";
  options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_FALSE(options->denseFallback) << "states keep their rows";
  texts.denseFallback = "on";
  texts.consolidate = "3";
  texts.rowCapacity = "64";
  options = checkOptions(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_TRUE(options->denseFallback) << "what the user asks for is kept";
  EXPECT_EQ(options->consolidateEvery, 3);
  EXPECT_EQ(options->rowCapacity, 64);
}

TEST(Options, AskForConsolidationOnAGpuByAnyOfItsTwo) {
  OptionTexts texts = good();
  texts.device = "cuda";
  auto resolved = [&](const char *every, const char *mode) {
    texts.consolidate = every;
    texts.consolidation = mode;
    auto options = checkOptions(texts);
    EXPECT_TRUE(options) << options.error();
    return std::make_pair(options->consolidateEvery, options->consolidation);
  };
  EXPECT_EQ(resolved("", ""), std::make_pair(0, -1));
  EXPECT_EQ(resolved("3", ""), std::make_pair(3, -1));
  EXPECT_EQ(resolved("", "asynchronous"),
            std::make_pair(4, int(SS_CONSOLIDATION_ASYNCHRONOUS)));
  EXPECT_EQ(resolved("off", ""), std::make_pair(0, -1));
  EXPECT_EQ(resolved("", "off"), std::make_pair(0, int(SS_CONSOLIDATION_OFF)));
  texts.consolidation = "inline";
  auto refused = checkOptions(texts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(),
            "--consolidation: found 'inline', expected off, asynchronous or "
            "deterministic on cuda, where no call waits for the host");
}

TEST(Options, RejectDevices) {
  for (const char *device : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda1"})
    EXPECT_EQ(errorWith(&OptionTexts::device, device),
              std::string("--device: found '") + device +
                  "', expected cpu, cuda or cuda:N");
  EXPECT_EQ(errorWith(&OptionTexts::rowCapacity, "64"),
            "--row-capacity: found '64', expected no such option on the CPU, "
            "whose states grow by themselves");
}

TEST(Options, WithoutACompilerPackagesAreNeeded) {
  OptionTexts texts = good();
  auto check = [&] { return checkOptions(texts, CompilerHalf::Absent); };
  EXPECT_EQ(check().error(),
            "--package: found nothing, expected a folder that ss-compile made: "
            "this ss-run was built without the compiler");
  texts.package = "package";
  auto options = check();
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->dense, DenseRun::Reference);
  texts.dense = "compiled";
  EXPECT_EQ(check().error(),
            "--dense: found 'compiled', expected --dense-package with it, or "
            "reference: this ss-run was built without the compiler");
  texts.densePackage = "dense";
  options = check();
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->dense, DenseRun::Compiled);
  EXPECT_EQ(options->densePackage, "dense");
  texts.dense = "reference";
  EXPECT_EQ(check().error(), "--dense-package: found a value, expected none "
                             "with --dense reference, which uses no kernels");
}

TEST(Options, RejectPolicies) {
  auto error = [](const char *text) {
    return errorWith(&OptionTexts::policy, text);
  };
  EXPECT_EQ(error("relative:1"), "--policy: found 'relative:1', expected "
                                 "relative:EPS with EPS from 0 to below 1");
  EXPECT_EQ(error("relative:-0.1"), "--policy: found 'relative:-0.1', expected "
                                    "relative:EPS with EPS from 0 to below 1");
  EXPECT_EQ(error("relative:nan"), "--policy: found 'relative:nan', expected "
                                   "relative:EPS with EPS from 0 to below 1");
  EXPECT_EQ(error("relative"), "--policy: found 'relative', expected "
                               "relative:EPS with EPS from 0 to below 1");
  EXPECT_EQ(error("fixed:0"), "--policy: found 'fixed:0', expected fixed:R "
                              "with an integer R from 1 to 32");
  EXPECT_EQ(error("fixed:33"), "--policy: found 'fixed:33', expected fixed:R "
                               "with an integer R from 1 to 32");
  EXPECT_EQ(error("energy:0"), "--policy: found 'energy:0', expected energy:F "
                               "with F above 0 and at most 1");
  EXPECT_EQ(error("best"), "--policy: found 'best', expected relative:EPS, "
                           "fixed:R, energy:F, budget:BYTES or sink:R");
  EXPECT_EQ(error("budget:0"), "--policy: found 'budget:0', expected "
                               "budget:BYTES with an integer of at least 1");
}

TEST(Options, RejectNumbers) {
  EXPECT_EQ(errorWith(&OptionTexts::active, "0"),
            "--active: found '0', expected an integer from 1 to 64");
  EXPECT_EQ(errorWith(&OptionTexts::buffer, "0"),
            "--buffer: found '0', expected an integer from 1 to 64");
  EXPECT_EQ(errorWith(&OptionTexts::buffer, "57"),
            "--buffer: found 8 active and 57 buffered rows, expected at most "
            "64 together");
  EXPECT_EQ(errorWith(&OptionTexts::tokens, "0"),
            "--tokens: found '0', expected an integer from 1 to 1073741824");
  EXPECT_EQ(errorWith(&OptionTexts::batch, "12x"),
            "--batch: found '12x', expected an integer from 1 to 65536");
  EXPECT_EQ(errorWith(&OptionTexts::consolidate, "no"),
            "--consolidate: found 'no', expected an integer from 1 to "
            "1073741824 or off");
  EXPECT_EQ(errorWith(&OptionTexts::seed, "-1"),
            "--seed: found '-1', expected an integer from 0 to "
            "18446744073709551615");
}

TEST(Options, RejectWords) {
  EXPECT_EQ(errorWith(&OptionTexts::denseFallback, "yes"),
            "--dense-fallback: found 'yes', expected on or off");
  EXPECT_EQ(errorWith(&OptionTexts::dense, "eigen"),
            "--dense: found 'eigen', expected compiled or reference");
}

TEST(Options, RejectMissingAndContradictingOptions) {
  EXPECT_EQ(errorWith(&OptionTexts::model, ""),
            "--model: found nothing, expected a folder with config.json and "
            "model.safetensors");
  EXPECT_EQ(errorWith(&OptionTexts::text, ""),
            "--text: found nothing, expected a file to decode, or a "
            ".safetensors file with a tensor 'tokens'");
  OptionTexts texts = good();
  texts.package = "package";
  texts.active = "8";
  EXPECT_EQ(checkOptions(texts).error(),
            "--active: found a value, expected none with --package, whose "
            "kernels have their own");
}

TEST(Options, RejectWhatTheRunWouldNotLookAt) {
  EXPECT_EQ(errorWith(&OptionTexts::output, "means"),
            "-o: found a value, expected it with --calibrate-sink, whose file "
            "it is");
  EXPECT_EQ(errorWith(&OptionTexts::sink, "means"),
            "--sink: found a value with --policy relative:0.03, expected it "
            "with --policy sink:R or a package of form sink");
  OptionTexts texts = good();
  texts.package = "package", texts.sink = "means";
  EXPECT_TRUE(checkOptions(texts)) << "the package says whether it has sinks";
}

TEST(Options, RejectOneFileForTwoOutputs) {
  OptionTexts texts = good();
  texts.json = "a.json", texts.svg = "b.svg", texts.ranks = "c.txt";
  EXPECT_TRUE(checkOptions(texts));
  texts.ranks = "b.svg";
  EXPECT_EQ(checkOptions(texts).error(), "--ranks: found 'b.svg', which --svg "
                                         "names too, expected another file");
  texts.ranks = "./x/../a.json";
  EXPECT_EQ(checkOptions(texts).error(),
            "--ranks: found './x/../a.json', which --json names too, expected "
            "another file");
  texts.svg = "a.json";
  EXPECT_EQ(checkOptions(texts).error(), "--svg: found 'a.json', which --json "
                                         "names too, expected another file");
}

OptionTexts calibration() {
  OptionTexts texts;
  texts.model = "model", texts.calibrateSink = "text", texts.output = "means";
  return texts;
}

TEST(Calibration, HasItsOwnOptions) {
  OptionTexts texts = calibration();
  texts.tokens = "7", texts.threads = "2";
  auto options = checkCalibration(texts);
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->text, "text");
  EXPECT_EQ(options->tokens, 7);
  EXPECT_EQ(options->threads, 2);
  texts.output.clear();
  EXPECT_EQ(checkCalibration(texts).error(),
            "-o: found nothing, expected the file to write with "
            "--calibrate-sink");
}

TEST(Calibration, RejectsAllOthers) {
  const std::pair<const char *, std::string OptionTexts::*> others[] = {
      {"text", &OptionTexts::text},       {"policy", &OptionTexts::policy},
      {"quality", &OptionTexts::quality}, {"json", &OptionTexts::json},
      {"svg", &OptionTexts::svg},         {"ranks", &OptionTexts::ranks},
      {"batch", &OptionTexts::batch},     {"prefill", &OptionTexts::prefill},
      {"storage", &OptionTexts::storage}, {"device", &OptionTexts::device},
      {"from", &OptionTexts::from},       {"sink", &OptionTexts::sink},
      {"generate", &OptionTexts::generate}};
  for (const auto &[name, member] : others) {
    OptionTexts texts = calibration();
    texts.*member = "1";
    auto options = checkCalibration(texts);
    ASSERT_FALSE(options) << name;
    EXPECT_EQ(options.error(), std::string("--") + name +
                                   ": found a value, expected none with "
                                   "--calibrate-sink");
  }
  OptionTexts texts = calibration();
  texts.timing = true;
  EXPECT_EQ(checkCalibration(texts).error(),
            "--timing: found a value, expected none with --calibrate-sink");
}

} // namespace
