//===- SSKTypes.cpp - pointers, scratch and register tiles ----------------===//
#include "dialect/ssk/SSKDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sinkstate::ssk;

#define GET_TYPEDEF_CLASSES
#include "dialect/ssk/SSKTypes.cpp.inc"

void SSKDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/ssk/SSKTypes.cpp.inc"
      >();
}

bool sinkstate::ssk::isNarrowFloat(Type type) {
  return isa<Float16Type, BFloat16Type, Float8E4M3FNType>(type);
}

bool sinkstate::ssk::isElementType(Type type) {
  return type.isF32() || type.isF64() || isNarrowFloat(type) ||
         type.isInteger(32) || type.isInteger(64);
}

Type sinkstate::ssk::getMemoryElementType(Type type) {
  return llvm::TypeSwitch<Type, Type>(type)
      .Case<GlobalType, SharedType>([](auto t) { return t.getElementType(); })
      .Default([](Type) { return Type(); });
}

static LogicalResult verifyElementType(function_ref<InFlightDiagnostic()> error,
                                       Type type) {
  if (isElementType(type) && (!type.isInteger() || type.isSignlessInteger()))
    return success();
  return error() << "element type is " << type
                 << ", expected f32, f64, f16, bf16, f8E4M3FN, i32 or i64";
}

static LogicalResult verifyShape(function_ref<InFlightDiagnostic()> error,
                                 ArrayRef<int64_t> shape) {
  // More elements than this is no register tile and no scratch of one warp.
  constexpr int64_t kMaxExtent = 1 << 20;
  if (shape.empty() || shape.size() > 2)
    return error() << "has " << shape.size() << " dimensions, expected 1 or 2";
  for (int64_t extent : shape)
    if (extent < 1 || extent > kMaxExtent)
      return error() << "has a dimension of " << extent << ", expected 1 to "
                     << kMaxExtent;
  return success();
}

static int64_t countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

static void printShape(AsmPrinter &printer, ArrayRef<int64_t> shape,
                       Type type) {
  for (int64_t extent : shape)
    printer << extent << 'x';
  printer << type;
}

LogicalResult GlobalType::verify(function_ref<InFlightDiagnostic()> error,
                                 Type elementType) {
  return verifyElementType(error, elementType);
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> error,
                                 ArrayRef<int64_t> shape, Type elementType) {
  if (failed(verifyShape(error, shape)))
    return failure();
  return verifyElementType(error, elementType);
}

int64_t SharedType::getNumElements() const { return countElements(getShape()); }

Type SharedType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseGreater())
    return Type();
  return parser.getChecked<SharedType>(loc, parser.getContext(), shape,
                                       elementType);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << '<';
  printShape(printer, getShape(), getElementType());
  printer << '>';
}

LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> error,
                               ArrayRef<int64_t> shape, Type elementType,
                               int64_t lanes) {
  if (failed(verifyShape(error, shape)))
    return failure();
  if (lanes < -1 || lanes >= int64_t(shape.size()))
    return error() << "lanes is " << lanes << ", expected one of the tile's "
                   << shape.size() << " dimensions";
  return verifyElementType(error, elementType);
}

int64_t TileType::getNumElements() const { return countElements(getShape()); }

Type TileType::dropAxis(int64_t axis) const {
  if (getRank() == 1)
    return getElementType();
  int64_t kept = 1 - axis;
  return TileType::get({getShape()[kept]}, getElementType(),
                       getLanes() == kept ? 0 : -1);
}

Type TileType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  int64_t lanes = -1;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType))
    return Type();
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("lanes") || parser.parseEqual())
      return Type();
    SMLoc lanesLoc = parser.getCurrentLocation();
    if (parser.parseInteger(lanes))
      return Type();
    if (lanes < 0) {
      parser.emitError(lanesLoc)
          << "lanes is " << lanes << ", expected a dimension of the tile";
      return Type();
    }
  }
  if (parser.parseGreater())
    return Type();
  return parser.getChecked<TileType>(loc, parser.getContext(), shape,
                                     elementType, lanes);
}

void TileType::print(AsmPrinter &printer) const {
  printer << '<';
  printShape(printer, getShape(), getElementType());
  if (hasLanes())
    printer << ", lanes = " << getLanes();
  printer << '>';
}
