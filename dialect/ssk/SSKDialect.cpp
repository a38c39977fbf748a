//===- SSKDialect.cpp - registration and argument attributes --------------===//
#include "dialect/ssk/SSKDialect.h"
#include "dialect/ssk/SSKWarps.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sinkstate::ssk;

#include "dialect/ssk/SSKDialect.cpp.inc"
#include "dialect/ssk/SSKEnums.cpp.inc"

void SSKDialect::initialize() {
  registerTypes();
  registerOps();
}

/// Binding names become parameter names of generated C.
static bool isIdentifier(StringRef name) {
  return !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

LogicalResult SSKDialect::verifyRegionArgAttribute(Operation *op,
                                                   unsigned regionIndex,
                                                   unsigned argIndex,
                                                   NamedAttribute attribute) {
  if (attribute.getName() == kNameAttr) {
    auto name = dyn_cast<StringAttr>(attribute.getValue());
    if (!name || !isIdentifier(name.getValue()))
      return op->emitOpError("argument ")
             << argIndex << ": 'ssk.name' is " << attribute.getValue()
             << ", expected a string that is a C identifier";
    return success();
  }
  if (attribute.getName() == kMayAliasAttr) {
    if (!isa<UnitAttr>(attribute.getValue()))
      return op->emitOpError("argument ")
             << argIndex << ": 'ssk.may_alias' is " << attribute.getValue()
             << ", expected no value";
    return success();
  }
  if (attribute.getName() == kDivisibleByAttr) {
    auto divisor = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!divisor || !divisor.getType().isSignlessInteger(64) ||
        divisor.getInt() < 1)
      return op->emitOpError("argument ")
             << argIndex << ": 'ssk.divisible_by' is " << attribute.getValue()
             << ", expected a positive number of type i64";
    return success();
  }
  return op->emitOpError("argument ")
         << argIndex << ": unknown attribute '"
         << attribute.getName().getValue()
         << "', expected 'ssk.name', 'ssk.may_alias' or 'ssk.divisible_by'";
}

LogicalResult SSKDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (attribute.getName() == kOverWarpsAttr)
    return verifyOverWarps(op);
  if (attribute.getName() == kIndependentAttr)
    return verifyIndependent(op, attribute.getValue());
  return success();
}

ArrayRef<Routine> sinkstate::ssk::getRoutines() {
  static const Routine routines[] = {
#define SS_ROUTINE(name, signature, warps) {#name, signature},
#include "sinkstate/routines.def"
  };
  return routines;
}
