//===- StateTypeTest.cpp - Sizes of states in bytes -----------------------===//

#include "dialect/ss/SS.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace sinkstate::ss;

namespace {

struct StateTypeTest : testing::Test {
  StateTypeTest() { context.loadDialect<SSDialect>(); }

  /// The type, or null if it is wrong.
  StateType make(LayerType type, Form form, Storage storage,
                 int64_t keyHeads = 2) {
    bool factored = form == Form::factored;
    int64_t heads = 4, dv = 80, dk = 128, active = factored ? 8 : 0,
            buffer = factored ? 6 : 0, rank = factored ? 96 : 0,
            draft = factored ? 2 : 0;
    auto emit = [&] { return emitError(UnknownLoc::get(&context)); };
    return StateType::getChecked(emit, &context, type, heads, keyHeads, dv, dk,
                                 form, active, buffer, rank, storage, draft,
                                 Rounding::nearest);
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
};

TEST_F(StateTypeTest, FactoredBytes) {
  StateType state = make(LayerType::gdn, Form::factored, Storage::f32);
  EXPECT_EQ(state.getBufferRows(), 8);
  EXPECT_EQ(state.getBlockRows(), 16);
  EXPECT_EQ(state.getComponentBytes(), (80 + 128) * 4 + 4);
  EXPECT_EQ(state.getRowBytes(), 4 * 96 * ((80 + 128) * 4 + 4));
  // Keys once per key head; u and one log-decay per head.
  EXPECT_EQ(state.getBufferBytes(), 4 * 8 * (2 * 128 + 4 * (80 + 1)));
}

TEST_F(StateTypeTest, ChannelDecayNeedsALogDecayPerChannel) {
  StateType state = make(LayerType::kda, Form::factored, Storage::f32);
  EXPECT_EQ(state.getBufferBytes(), 4 * 8 * (2 * 128 + 4 * (80 + 128)));
}

TEST_F(StateTypeTest, StorageChangesRowsAndNothingElse) {
  StateType wide = make(LayerType::gdn, Form::factored, Storage::f32);
  StateType narrow = make(LayerType::gdn, Form::factored, Storage::bf16);
  EXPECT_EQ(narrow.getComponentBytes(), (80 + 128) * 2 + 4);
  EXPECT_EQ(narrow.getBufferBytes(), wide.getBufferBytes());
  StateType bytes = make(LayerType::gdn, Form::factored, Storage::fp8);
  EXPECT_EQ(bytes.getComponentBytes(), 80 + 128 + 4);
}

TEST_F(StateTypeTest, DenseBytes) {
  StateType state = make(LayerType::gdn, Form::dense, Storage::f32);
  EXPECT_EQ(state.getRowBytes(), 4 * 80 * 128 * 4);
  EXPECT_EQ(state.getBufferBytes(), 0);
}

TEST_F(StateTypeTest, DeferredBytesAreAMatrixAndABuffer) {
  auto emit = [&] { return emitError(UnknownLoc::get(&context)); };
  const int64_t none = 0, heads = 4, keyHeads = 2, dv = 80, dk = 128, buffer = 8;
  StateType state = StateType::getChecked(
      emit, &context, LayerType::gdn, heads, keyHeads, dv, dk, Form::deferred,
      none, buffer, none, Storage::f16, none, Rounding::nearest);
  EXPECT_EQ(state.getRowBytes(), 4 * 80 * 128 * 2);
  EXPECT_EQ(state.getBufferBytes(), 4 * 8 * (2 * 128 + 4 * (80 + 1)));
  EXPECT_FALSE(state.isFactored());
  EXPECT_FALSE(state.isDense());
}

TEST_F(StateTypeTest, AWrongTypeIsToldAndNotMade) {
  int errors = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &) {
    ++errors;
    return success();
  });
  auto emit = [&] { return emitError(UnknownLoc::get(&context)); };
  EXPECT_FALSE(make(LayerType::gdn, Form::factored, Storage::f32, 3));
  EXPECT_FALSE(PolicyAttr::getChecked(emit, &context, PolicyKind::relative,
                                      llvm::APFloat(1.0)));
  EXPECT_EQ(errors, 2);
}

} // namespace
