//===- SSKOps.cpp - registration of the operations ------------------------===//
#include "dialect/ssk/SSKDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sinkstate::ssk;

#define GET_OP_CLASSES
#include "dialect/ssk/SSKOps.cpp.inc"

void SSKDialect::registerOps() {
  addOperations<
#define GET_OP_LIST
#include "dialect/ssk/SSKOps.cpp.inc"
      >();
}
