//===- VariantsTest.cpp - What --quality asks for -------------------------===//

#include "Options.h"

#include <gtest/gtest.h>

#include <utility>

using namespace ss_run;

namespace {

OptionTexts texts(const std::string &quality) {
  OptionTexts all;
  all.model = "model";
  all.text = "text";
  all.quality = quality;
  return all;
}

TEST(Variants, AreThePoliciesWithTheirStorages) {
  auto variants = checkVariants(
      texts("relative:0.03,relative:0.1/f16,fixed:16/fp8/stochastic,fixed:8/"
            "fp8+kda=f16/stochastic"));
  ASSERT_TRUE(variants) << variants.error();
  ASSERT_EQ(variants->size(), 4u);
  EXPECT_EQ(toString((*variants)[0].storage), "f32");
  EXPECT_EQ((*variants)[1].policy.value, 0.1);
  EXPECT_EQ(toString((*variants)[1].storage), "f16");
  EXPECT_EQ(toString((*variants)[2].storage), "fp8");
  EXPECT_EQ((*variants)[2].rounding, Rounding::Stochastic);
  EXPECT_EQ((*variants)[2].buffer, 16);
  EXPECT_EQ(nameVariant((*variants)[0]), "relative:0.03");
  EXPECT_EQ(nameVariant((*variants)[2]), "fixed:16/fp8/stochastic");
  EXPECT_EQ(nameVariant((*variants)[3]), "fixed:8/fp8+kda=f16/stochastic");
}

void expectError(const OptionTexts &given, const std::string &message,
                 CompilerHalf compiler = CompilerHalf::Present) {
  auto variants = checkVariants(given, compiler);
  ASSERT_FALSE(variants);
  EXPECT_EQ(variants.error(), message);
}

TEST(Variants, SayWhatIsWrong) {
  expectError(texts("relative:0.03,,fixed:8"),
              "--quality: found '', expected POLICY, POLICY/STORAGE or "
              "POLICY/STORAGE/ROUNDING, separated by commas");
  expectError(texts("fixed:8/f16/nearest/x"),
              "--quality: found 'fixed:8/f16/nearest/x', expected POLICY, "
              "POLICY/STORAGE or POLICY/STORAGE/ROUNDING, separated by commas");
  expectError(texts("fixed:0"), "--quality 'fixed:0': --policy: found "
                                "'fixed:0', expected fixed:R with an integer R "
                                "from 1 to 32");
  expectError(texts("fixed:8/f64"),
              "--quality 'fixed:8/f64': --storage: found 'f64', expected f32, "
              "f16, bf16 or fp8, and behind it +TYPE=STORAGE once for layers of "
              "type gdn, mamba2 or kda");
  OptionTexts both = texts("fixed:8");
  both.policy = "fixed:16";
  expectError(both, "--quality: found it with --policy, expected one of the "
                    "two: it runs policies and storages of its own");
  expectError(texts("fixed:8"),
              "--quality: found it without a compiler, expected an ss-run that "
              "can compile the kernels of every policy",
              CompilerHalf::Absent);
}

TEST(Variants, TakeAPrefillAndTheFirstTokenThatCounts) {
  OptionTexts given = texts("fixed:8,relative:0.1");
  given.tokens = "64", given.prefill = "32", given.from = "40";
  auto variants = checkVariants(given);
  ASSERT_TRUE(variants) << variants.error();
  for (const RunOptions &options : *variants) {
    EXPECT_EQ(options.prefill, 32);
    EXPECT_EQ(options.from, 40);
  }
}

TEST(Variants, NeedATokenInEveryQuarter) {
  OptionTexts given = texts("fixed:8");
  given.tokens = "4";
  EXPECT_TRUE(checkVariants(given));
  given.tokens = "3";
  expectError(given, "--quality: found 3 tokens to measure, expected at least "
                     "4, one for each quarter: see --tokens and --from");
  given.tokens = "64", given.from = "62";
  expectError(given, "--quality: found 2 tokens to measure, expected at least "
                     "4, one for each quarter: see --tokens and --from");
}

TEST(Variants, GiveSinksToWhomTheyAreOfUse) {
  OptionTexts given = texts("fixed:8,sink:8");
  given.sink = "means";
  auto variants = checkVariants(given);
  ASSERT_TRUE(variants) << variants.error();
  EXPECT_EQ((*variants)[0].sink, "");
  EXPECT_EQ((*variants)[1].sink, "means");
  given.quality = "fixed:8";
  expectError(given, "--sink: found a value, expected it with a policy sink:R "
                     "in --quality");
}

TEST(Variants, RejectWhatBelongsToOneRun) {
  const std::pair<const char *, std::string OptionTexts::*> others[] = {
      {"--ranks", &OptionTexts::ranks},
      {"--generate", &OptionTexts::generate},
      {"--seed", &OptionTexts::seed},
      {"-o", &OptionTexts::output}};
  for (const auto &[name, member] : others) {
    OptionTexts given = texts("fixed:8");
    given.*member = "1";
    expectError(given, std::string("--quality: found it with ") + name +
                           ", expected one of the two");
  }
}

} // namespace
