//===- CppLiteral.cpp - Types and literals in C++ -------------------------===//

#include "codegen/common/CppExpr.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace mlir;
using namespace sinkstate::codegen;

llvm::StringRef sinkstate::codegen::getCppScalarType(Type type) {
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isF16())
    return "ss::half";
  if (type.isBF16())
    return "ss::bfloat16";
  if (isa<Float8E4M3FNType>(type))
    return "ss::float8";
  if (type.isInteger(1))
    return "bool";
  if (type.isSignlessInteger(32))
    return "int32_t";
  if (type.isSignlessInteger(64) || type.isIndex())
    return "int64_t";
  return {};
}

/// The shortest decimal that reads back as `value`.
template <typename Float>
static std::string getShortestDecimal(Float value, int digits) {
  char text[40];
  for (int precision = 1; precision <= digits; ++precision) {
    std::snprintf(text, sizeof text, "%.*g", precision, double(value));
    Float back = sizeof(Float) == sizeof(float) ? Float(std::strtof(text, nullptr))
                                                : Float(std::strtod(text, nullptr));
    if (back == value)
      break;
  }
  std::string result = text;
  size_t exponent = result.find('e');
  if (exponent == std::string::npos)
    return result.find('.') == std::string::npos ? result + ".0" : result;
  // 1e-06 is 1e-6; 1e+05 is 100000.0.
  int power = std::atoi(result.c_str() + exponent + 1);
  if (power > 0 && power < 9) {
    std::snprintf(text, sizeof text, "%.1f", double(value));
    return text;
  }
  return result.substr(0, exponent + 1) + std::to_string(power);
}

static CppExpr getFloatLiteral(const llvm::APFloat &value, Type type) {
  bool isDouble = type.isF64();
  if (value.isNaN()) {
    // Bits, so that the payload survives.
    uint64_t bits = value.bitcastToAPInt().getZExtValue();
    std::string text = (isDouble ? "__longlong_as_double(" : "__int_as_float(") +
                       ("0x" + llvm::utohexstr(bits, /*LowerCase=*/true)) +
                       (isDouble ? "ll)" : ")");
    return {text};
  }
  Precedence precedence =
      value.isNegative() ? Precedence::Unary : Precedence::Primary;
  if (value.isInfinity()) {
    std::string name = isDouble ? "double(INFINITY)" : "INFINITY";
    return {value.isNegative() ? "-" + name : name, precedence};
  }
  std::string text = isDouble ? getShortestDecimal(value.convertToDouble(), 17)
                              : getShortestDecimal(value.convertToFloat(), 9) + "f";
  return {text, precedence};
}

CppExpr sinkstate::codegen::getCppLiteral(TypedAttr attr) {
  Type type = attr.getType();
  if (auto real = dyn_cast<FloatAttr>(attr)) {
    if (type.isF32() || type.isF64())
      return getFloatLiteral(real.getValue(), type);
    llvm::APFloat wide = real.getValue();
    bool lost;
    wide.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
    CppExpr inner = getFloatLiteral(wide, Float32Type::get(type.getContext()));
    return {getCppScalarType(type).str() + "(" + inner.text + ")"};
  }
  auto integer = cast<IntegerAttr>(attr);
  if (type.isInteger(1))
    return {integer.getValue().isZero() ? "false" : "true"};
  int64_t value = integer.getValue().getSExtValue();
  CppExpr result{std::to_string(value), value < 0 ? Precedence::Unary : Precedence::Primary};
  // -2147483648 is minus a literal that does not fit.
  if (value == INT64_MIN)
    result = {"(-9223372036854775807ll - 1)"};
  else if (!type.isInteger(32) && (value > INT32_MAX || value <= INT32_MIN))
    result.text += "ll";
  else if (value == INT32_MIN)
    result = {"(-2147483647 - 1)"};
  result.isLiteral = true;
  return result;
}
