//===- StateOpInterfaceTest.cpp - What operations tell fusion -------------===//

#include "dialect/ss/SS.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace sinkstate::ss;

namespace {

/// r, w: reads and writes rows; R, W: the buffer; the number: passes over rows.
std::string describe(SSStateOpInterface op) {
  std::string text;
  text += op.readsRows() ? "r" : "";
  text += op.writesRows() ? "w" : "";
  text += op.readsBuffer() ? "R" : "";
  text += op.writesBuffer() ? "W" : "";
  return text + std::to_string(op.rowPasses());
}

/// Every state operation on states of the type and form, by its name.
std::map<std::string, std::string> describeAll(std::string type,
                                               std::string form) {
  bool factored = form == "factored", channel = type == "kda";
  std::string state =
      "!ss.state<" + type +
      ", heads = 2, key_heads = 2, dv = 8, dk = 8, form = " + form +
      (factored ? ", active = 2, buffer = 2, rank = 12" : "") +
      ", storage = f32>";
  std::string decay = channel ? "tensor<2x8xf32>" : "tensor<2xf32>";
  std::string text = "!S = " + state + R"(
!A = !ss.factors<heads = 2, rows = 2, dv = 8, dk = 8>
!F = !ss.factors<heads = 2, rows = 4, dv = 8, dk = 8>
func.func @f(%s: !S, %k: tensor<2x8xf32>, %w: tensor<2xf32>, %g: )" +
                     decay + R"(,
             %h: tensor<2x8x8xf32>, %a: !A, %r: !F) {
  %0 = ss.normalize %k norm #ss.norm<none> scale 1.0 : tensor<2x8xf32>
  %1 = ss.decay %s by %g : !S, )" +
                     decay + R"(
  %2 = ss.append %s, %k, %k weight %w : !S, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2xf32>
  %3 = ss.readout %s, %k : !S, tensor<2x8xf32> -> tensor<2x8xf32>
  %4 = ss.densify %s : !S -> tensor<2x8x8xf32>
  %5 = ss.init %h eps 0.0 : tensor<2x8x8xf32> -> !S
)";
  if (factored)
    text += R"(
  %6, %7 = ss.split %s : !S -> !A, !S
  %8 = ss.concat %a, %s : !A, !S -> !F
  %9 = ss.merge %r, %s : !F, !S
  %10 = ss.truncate %s policy <relative, 0.03> : !S
  %11 = ss.consolidate %s eps 0.0 : !S
)";
  text += "  return\n}\n";
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<SSDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  std::map<std::string, std::string> result;
  if (module)
    module->walk([&](SSStateOpInterface op) {
      result[op->getName().stripDialect().str()] = describe(op);
      EXPECT_TRUE(hasAxes(op.parallelAxes(), StateAxis::heads));
      EXPECT_EQ(hasAxes(op.parallelAxes(), StateAxis::channels),
                isa<DensifyOp>(op.getOperation()));
    });
  return result;
}

using Answers = std::map<std::string, std::string>;

TEST(StateOpInterface, DeltaRuleReadsWhatItCorrects) {
  EXPECT_EQ(describeAll("gdn", "factored"), (Answers{{"normalize", "0"},
                                                     {"decay", "W0"},
                                                     {"append", "rRW1"},
                                                     {"readout", "rR1"},
                                                     {"densify", "rR1"},
                                                     {"init", "wW1"},
                                                     {"split", "rR1"},
                                                     {"concat", "RW0"},
                                                     {"merge", "w1"},
                                                     {"truncate", "w1"},
                                                     {"consolidate", "rw2"}}));
}

TEST(StateOpInterface, WithoutTheDeltaRuleAppendReadsNothing) {
  Answers answers = describeAll("mamba2", "factored");
  EXPECT_EQ(answers["append"], "W0");
  EXPECT_EQ(answers["readout"], "rR1");
}

TEST(StateOpInterface, ChannelDecaysChangeRowsWhenFolded) {
  Answers answers = describeAll("kda", "factored");
  EXPECT_EQ(answers["split"], "rwR2");
  EXPECT_EQ(answers["decay"], "W0");
}

TEST(StateOpInterface, DenseStatesHaveNoBuffer) {
  EXPECT_EQ(describeAll("gdn", "dense"), (Answers{{"normalize", "0"},
                                                  {"decay", "rw2"},
                                                  {"append", "rw2"},
                                                  {"readout", "r1"},
                                                  {"densify", "r1"},
                                                  {"init", "w1"}}));
}

} // namespace
