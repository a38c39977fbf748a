//===- StatementTest.cpp - What the CUDA printer knows of the dialects ----===//

#include "codegen/cuda/CudaStatement.h"
#include "dialect/ssk/SSKDialect.h"
#include "passes/pipelines/Register.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace sinkstate;

namespace {

class CudaStatements : public testing::Test {
protected:
  CudaStatements() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    cuda::attachCudaStatements(context);
  }

  bool isKnown(RegisteredOperationName name) { return name.hasInterface<cuda::CudaStatement>(); }

  MLIRContext context;
};

/// Asking ahead for the next state is for processors: on a GPU it is the other warps
/// that wait meanwhile.
TEST_F(CudaStatements, AreAllOperationsOfKernelsButThoseOfProcessors) {
  std::vector<std::string> unknown;
  int count = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == "ssk") {
      ++count;
      if (!isKnown(name))
        unknown.push_back(name.getStringRef().str());
    }
  llvm::sort(unknown);
  EXPECT_EQ(unknown, (std::vector<std::string>{"ssk.next_program", "ssk.prefetch"}));
  EXPECT_GT(count, 15);
}

TEST_F(CudaStatements, AreTheLoopsAndBranchesAlone) {
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    StringRef full = name.getStringRef();
    if (name.getDialectNamespace() == "ssk")
      continue;
    bool isExpected = full == "scf.for" || full == "scf.if" || full == "scf.yield";
    EXPECT_EQ(isKnown(name), isExpected) << full.str();
  }
}

TEST_F(CudaStatements, MayBeAttachedAgain) {
  cuda::attachCudaStatements(context);
  auto load = RegisteredOperationName::lookup("ssk.load", &context);
  ASSERT_TRUE(load);
  EXPECT_TRUE(isKnown(*load));
}

} // namespace
