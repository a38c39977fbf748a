//===- SSDialect.cpp - The ss dialect -------------------------------------===//

#include "dialect/ss/SS.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sinkstate::ss;

#include "dialect/ss/SSDialect.cpp.inc"
#include "dialect/ss/SSEnums.cpp.inc"
#include "dialect/ss/SSInterfaces.cpp.inc"

void SSDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/ss/SSOps.cpp.inc"
      >();
}

bool SSDialect::isRole(StringRef role) {
  return llvm::StringSwitch<bool>(role)
      .Cases({"decode", "compact", "densify", "init"}, true)
      .Default(false);
}

LogicalResult SSDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attribute) {
  StringRef name = attribute.getName().strref();
  if (name == getLayerAttrName()) {
    if (isa<FlatSymbolRefAttr>(attribute.getValue()))
      return success();
    return op->emitError("'ss.layer' is ")
           << attribute.getValue() << ", expected the symbol of an ss.layer";
  }
  if (name == getRoleAttrName()) {
    auto role = dyn_cast<StringAttr>(attribute.getValue());
    if (role && isRole(role.getValue()))
      return success();
    return op->emitError("'ss.role' is ")
           << attribute.getValue()
           << R"(, expected "decode", "compact", "densify" or "init")";
  }
  return op->emitError("unknown attribute '")
         << name << "', expected 'ss.layer' or 'ss.role'";
}
