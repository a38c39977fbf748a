//===- SSAttributes.cpp - Attributes of ss --------------------------------===//

#include "dialect/ss/SS.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstdlib>

using namespace mlir;
using namespace sinkstate::ss;

#define GET_ATTRDEF_CLASSES
#include "dialect/ss/SSAttributes.cpp.inc"

void SSDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/ss/SSAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Text form, shared: `<kind>` or `<kind, number>`
//===----------------------------------------------------------------------===//

/// Parses an integer or a floating point number, with its sign.
static ParseResult parseNumber(AsmParser &parser, double &number) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute attr;
  if (parser.parseAttribute(attr))
    return failure();
  if (auto real = dyn_cast<FloatAttr>(attr))
    number = real.getValueAsDouble();
  else if (auto whole = dyn_cast<IntegerAttr>(attr))
    number = whole.getValue().roundToDouble(/*isSigned=*/true);
  else
    return parser.emitError(loc, "expected a number");
  return success();
}

template <typename Enum>
static ParseResult parseKind(AsmParser &parser, StringRef what, Enum &kind) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Enum> parsed = symbolizeEnum<Enum>(word);
  if (!parsed)
    return parser.emitError(loc, "unknown ")
           << what << " '" << word << "', expected " << listKeywords<Enum>();
  kind = *parsed;
  return success();
}

template <typename Attr, typename Enum>
static Attribute parseKindAndNumber(AsmParser &parser, StringRef what) {
  Enum kind;
  double number = 0.0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseKind(parser, what, kind))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parseNumber(parser, number))
    return {};
  if (parser.parseGreater())
    return {};
  return Attr::getChecked([&] { return parser.emitError(loc); },
                          parser.getContext(), kind, APFloat(number));
}

/// Prints the shortest literal that reads back as the same number: 1.0e-12.
static void printNumber(AsmPrinter &printer, const APFloat &number) {
  double value = number.convertToDouble();
  if (!std::isfinite(value))
    return printer.printFloat(number);
  std::string text;
  for (int digits = 0; digits <= 16; ++digits) {
    text = llvm::formatv("{0}", llvm::format("%.*e", digits, value)).str();
    if (std::strtod(text.c_str(), nullptr) == value)
      break;
  }
  // A literal needs a point.
  if (text.find('.') == std::string::npos)
    text.insert(text.find('e'), ".0");
  printer << text;
}

template <typename Attr>
static void printKindAndNumber(AsmPrinter &printer, Attr attr, bool hasNumber,
                               bool whole = false) {
  printer << '<' << stringifyEnum(attr.getKind());
  if (hasNumber) {
    printer << ", ";
    if (whole)
      printer << static_cast<int64_t>(attr.getNumber().convertToDouble());
    else
      printNumber(printer, attr.getNumber());
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Policy
//===----------------------------------------------------------------------===//

Attribute PolicyAttr::parse(AsmParser &parser, Type) {
  return parseKindAndNumber<PolicyAttr, PolicyKind>(parser, "policy");
}

void PolicyAttr::print(AsmPrinter &printer) const {
  bool whole =
      getKind() == PolicyKind::fixed || getKind() == PolicyKind::budget;
  printKindAndNumber(printer, *this, /*hasNumber=*/true, whole);
}

LogicalResult PolicyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 PolicyKind kind, APFloat number) {
  double value = number.convertToDouble();
  auto reject = [&](StringRef what, StringRef expected) {
    return emitError() << "policy '" << stringifyEnum(kind) << "' has " << what
                       << " " << formatNumber(value) << ", expected "
                       << expected;
  };
  // Counts are stored as doubles: above 2^53 they would not be exact.
  bool count = value >= 1 && value <= 0x1p53 && value == std::floor(value);
  switch (kind) {
  case PolicyKind::relative:
    return value >= 0 && value < 1 ? success() : reject("eps", "0 <= eps < 1");
  case PolicyKind::energy:
    return value > 0 && value <= 1 ? success()
                                   : reject("share", "0 < share <= 1");
  case PolicyKind::fixed:
    return count ? success() : reject("rank", "a whole number of at least 1");
  case PolicyKind::budget:
    return count ? success() : reject("bytes", "a whole number of at least 1");
  }
  return emitError() << "unknown policy, expected "
                     << listKeywords<PolicyKind>();
}

//===----------------------------------------------------------------------===//
// Gate
//===----------------------------------------------------------------------===//

Attribute GateAttr::parse(AsmParser &parser, Type) {
  return parseKindAndNumber<GateAttr, GateKind>(parser, "gate");
}

void GateAttr::print(AsmPrinter &printer) const {
  printKindAndNumber(printer, *this, isBounded());
}

LogicalResult GateAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               GateKind kind, APFloat number) {
  if (stringifyEnum(kind).empty())
    return emitError() << "unknown gate, expected " << listKeywords<GateKind>();
  double bound = number.convertToDouble();
  if (kind != GateKind::bounded_channel) {
    if (bound != 0)
      return emitError() << "gate '" << stringifyEnum(kind)
                         << "' has a bound of " << formatNumber(bound)
                         << ", but only 'bounded_channel' takes one";
    return success();
  }
  if (!(bound < 0) || !number.isFinite())
    return emitError() << "gate 'bounded_channel' has a bound of "
                       << formatNumber(bound)
                       << ", expected a finite one below 0, such as -5.0";
  return success();
}

//===----------------------------------------------------------------------===//
// Norm
//===----------------------------------------------------------------------===//

Attribute NormAttr::parse(AsmParser &parser, Type) {
  return parseKindAndNumber<NormAttr, NormKind>(parser, "norm");
}

void NormAttr::print(AsmPrinter &printer) const {
  printKindAndNumber(printer, *this, getKind() != NormKind::none);
}

LogicalResult NormAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               NormKind kind, APFloat number) {
  if (stringifyEnum(kind).empty())
    return emitError() << "unknown norm, expected " << listKeywords<NormKind>();
  double eps = number.convertToDouble();
  if (kind == NormKind::none) {
    if (eps != 0)
      return emitError() << "norm 'none' has an epsilon of "
                         << formatNumber(eps) << ", but takes none";
    return success();
  }
  if (!(eps > 0) || !number.isFinite())
    return emitError() << "norm '" << stringifyEnum(kind)
                       << "' has an epsilon of " << formatNumber(eps)
                       << ", expected a finite one above 0, such as 1.0e-6";
  return success();
}
