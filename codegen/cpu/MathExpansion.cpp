//===- MathExpansion.cpp - arith and math without a C library -------------===//
#include "codegen/cpu/MathExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace sinkstate::cpu;

namespace {

/// Arithmetic on values shaped like `x`, f32 or i32 or i1.
class Expression {
public:
  Expression(OpBuilder &builder, Location loc, Value x)
      : builder(builder), loc(loc), floatType(x.getType()),
        intType(withElement(builder.getI32Type())) {}

  Value number(float value) {
    return constant(floatType, builder.getF32FloatAttr(value));
  }
  Value integer(int32_t value) {
    return constant(intType, builder.getI32IntegerAttr(value));
  }
  Value add(Value a, Value b) {
    return arith::AddFOp::create(builder, loc, a, b);
  }
  Value sub(Value a, Value b) {
    return arith::SubFOp::create(builder, loc, a, b);
  }
  Value mul(Value a, Value b) {
    return arith::MulFOp::create(builder, loc, a, b);
  }
  Value div(Value a, Value b) {
    return arith::DivFOp::create(builder, loc, a, b);
  }
  Value fma(Value a, Value b, Value c) {
    return LLVM::FMulAddOp::create(builder, loc, a, b, c);
  }
  Value addInt(Value a, Value b) {
    return arith::AddIOp::create(builder, loc, a, b);
  }
  Value subInt(Value a, Value b) {
    return arith::SubIOp::create(builder, loc, a, b);
  }
  Value andInt(Value a, Value b) {
    return arith::AndIOp::create(builder, loc, a, b);
  }
  Value orInt(Value a, Value b) {
    return arith::OrIOp::create(builder, loc, a, b);
  }
  Value shiftLeft(Value a, int32_t bits) {
    return arith::ShLIOp::create(builder, loc, a, integer(bits));
  }
  Value shiftRight(Value a, int32_t bits) {
    return arith::ShRSIOp::create(builder, loc, a, integer(bits));
  }
  Value toBits(Value a) {
    return arith::BitcastOp::create(builder, loc, intType, a);
  }
  Value fromBits(Value a) {
    return arith::BitcastOp::create(builder, loc, floatType, a);
  }
  Value toFloat(Value a) {
    return arith::SIToFPOp::create(builder, loc, floatType, a);
  }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value compareInt(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  /// ((c0 x + c1) x + c2) ...
  Value polynomial(Value x, ArrayRef<float> coefficients) {
    Value sum = number(coefficients[0]);
    for (float coefficient : coefficients.drop_front())
      sum = fma(sum, x, number(coefficient));
    return sum;
  }
  /// 2^n for -127 < n < 128.
  Value powerOfTwo(Value n) {
    return fromBits(shiftLeft(addInt(n, integer(127)), 23));
  }

  Type withElement(Type element) {
    if (auto vector = dyn_cast<VectorType>(floatType))
      return VectorType::get(vector.getShape(), element);
    return element;
  }

private:
  Value constant(Type type, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, Attribute(value));
    return arith::ConstantOp::create(builder, loc, value);
  }

  OpBuilder &builder;
  Location loc;
  Type floatType, intType;
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

} // namespace

/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by the polynomial of Cephes' expf;
/// 2^n in two factors, so that results beyond the normal range come out right.
Value sinkstate::cpu::createExp(OpBuilder &builder, Location loc, Value x) {
  Expression e(builder, loc, x);
  using P = arith::CmpFPredicate;
  // e^89 is infinite and e^-104 is zero in f32. NaN passes both comparisons.
  x = e.select(e.compare(P::OGT, x, e.number(89.0f)), e.number(89.0f), x);
  x = e.select(e.compare(P::OLT, x, e.number(-104.0f)), e.number(-104.0f), x);
  // Adding 1.5 * 2^23 rounds to the nearest integer, which then stands in the
  // low bits.
  Value magic = e.number(12582912.0f);
  Value shifted = e.fma(x, e.number(1.44269504088896341f), magic);
  Value n = e.subInt(e.toBits(shifted), e.toBits(magic));
  Value nf = e.sub(shifted, magic);
  // ln 2 in two parts; products of n and the first are exact.
  Value r = e.fma(nf, e.number(-0.693359375f), x);
  r = e.fma(nf, e.number(2.12194440e-4f), r);
  Value p =
      e.polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                       4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f});
  Value y = e.add(e.fma(p, e.mul(r, r), r), e.number(1.0f));
  Value half = e.shiftRight(n, 1);
  return e.mul(e.mul(y, e.powerOfTwo(half)), e.powerOfTwo(e.subInt(n, half)));
}

/// x = 2^k m with m in [sqrt(1/2), sqrt(2)); ln m by the series in
/// s = f / (2 + f), f = m - 1, with the coefficients of the FreeBSD msun.
Value sinkstate::cpu::createLog(OpBuilder &builder, Location loc, Value x) {
  Expression e(builder, loc, x);
  using P = arith::CmpFPredicate;
  Value tiny = e.compare(P::OLT, x, e.number(1.17549435e-38f));
  Value normal = e.select(tiny, e.mul(x, e.number(8388608.0f)), x);
  Value bits = e.addInt(e.toBits(normal), e.integer(0x3f800000 - 0x3f3504f3));
  Value k = e.subInt(e.shiftRight(bits, 23), e.integer(127));
  k = e.select(tiny, e.subInt(k, e.integer(23)), k);
  Value m = e.fromBits(
      e.addInt(e.andInt(bits, e.integer(0x007fffff)), e.integer(0x3f3504f3)));
  Value f = e.sub(m, e.number(1.0f));
  Value s = e.div(f, e.add(f, e.number(2.0f)));
  Value z = e.mul(s, s);
  Value series = e.mul(z, e.polynomial(z, {0.24279078841f, 0.28498786688f,
                                           0.40000972152f, 0.66666662693f}));
  Value halfSquare = e.mul(e.mul(e.number(0.5f), f), f);
  Value kf = e.toFloat(k);
  Value low = e.fma(s, e.add(halfSquare, series),
                    e.mul(kf, e.number(9.0580006145e-6f)));
  Value result = e.add(e.sub(low, halfSquare), f);
  result = e.fma(kf, e.number(6.9313812256e-1f), result);
  result = e.select(e.compare(P::OEQ, x, e.number(kInfinity)), x, result);
  result = e.select(e.compare(P::OEQ, x, e.number(0.0f)), e.number(-kInfinity),
                    result);
  return e.select(e.compare(P::ULT, x, e.number(0.0f)), e.number(kNaN), result);
}

/// With u = 1 + x as rounded, ln (1 + x) = ln u + (x - (u - 1)) / u.
Value sinkstate::cpu::createLog1p(OpBuilder &builder, Location loc, Value x) {
  Expression e(builder, loc, x);
  using P = arith::CmpFPredicate;
  Value one = e.number(1.0f);
  Value u = e.add(x, one);
  Value rest = e.sub(x, e.sub(u, one));
  Value log = createLog(builder, loc, u);
  Value result = e.add(log, e.div(rest, u));
  // At 0 and infinity the correction is 0/0 or NaN; the logarithm stands.
  Value keep = e.compare(P::OEQ, u, e.number(0.0f));
  result = e.select(keep, log, result);
  return e.select(e.compare(P::OEQ, u, e.number(kInfinity)), u, result);
}

/// f32 to bf16, to nearest, ties to even, in integers: processors without the
/// instruction would call a library.
static Value createTruncToBF16(OpBuilder &builder, Location loc, Value x,
                               Type type) {
  Expression e(builder, loc, x);
  Value bits = e.toBits(x);
  Value odd = e.andInt(e.shiftRight(bits, 16), e.integer(1));
  Value rounded = e.addInt(bits, e.addInt(odd, e.integer(0x7fff)));
  Value isNaN = e.compare(arith::CmpFPredicate::UNO, x, x);
  rounded = e.select(isNaN, e.integer(0x7fc00000), rounded);
  Value high = e.shiftRight(rounded, 16);
  Value half = arith::TruncIOp::create(
      builder, loc, e.withElement(builder.getI16Type()), high);
  return arith::BitcastOp::create(builder, loc, type, half);
}

/// f32 to f16, to nearest, ties to even, in integers. Processors before F16C
/// would call a library.
static Value createTruncToF16(OpBuilder &builder, Location loc, Value x,
                              Type type) {
  Expression e(builder, loc, x);
  using P = arith::CmpIPredicate;
  Value bits = e.toBits(x);
  Value magnitude = e.andInt(bits, e.integer(0x7fffffff));
  // Exponents differ by 112; a carry out of the mantissa is the next power.
  Value odd = e.andInt(e.shiftRight(magnitude, 13), e.integer(1));
  Value normal = e.shiftRight(
      e.addInt(magnitude, e.addInt(odd, e.integer(0xfff))), 13);
  normal = e.subInt(normal, e.integer(112 << 10));
  Value infinite = e.integer(0x7c00);
  normal = e.select(e.compareInt(P::sgt, normal, infinite), infinite, normal);
  // Below 2^-14 f16 has steps of 2^-24, which are those of f32 above 1/2.
  Value half = e.number(0.5f);
  Value subnormal =
      e.subInt(e.toBits(e.add(e.fromBits(magnitude), half)), e.toBits(half));
  Value result = e.select(e.compareInt(P::slt, magnitude, e.integer(113 << 23)),
                          subnormal, normal);
  Value isNaN = e.compareInt(P::sgt, magnitude, e.integer(0x7f800000));
  result = e.select(isNaN, e.integer(0x7e00), result);
  Value sign = e.andInt(e.shiftRight(bits, 16), e.integer(0x8000));
  Value narrow = arith::TruncIOp::create(
      builder, loc, e.withElement(builder.getI16Type()), e.addInt(result, sign));
  return arith::BitcastOp::create(builder, loc, type, narrow);
}

/// f16 to f32, which is exact, in integers.
static Value createExtFromF16(OpBuilder &builder, Location loc, Value x,
                              Type type) {
  Type shortType = builder.getI16Type();
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    shortType = VectorType::get(vector.getShape(), shortType);
  Value half = arith::BitcastOp::create(builder, loc, shortType, x);
  Type wideType = builder.getI32Type();
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    wideType = VectorType::get(vector.getShape(), wideType);
  Value bits = arith::ExtSIOp::create(builder, loc, wideType, half);
  Value shape = arith::BitcastOp::create(builder, loc, type, bits);
  Expression e(builder, loc, shape);
  using P = arith::CmpIPredicate;
  Value magnitude = e.andInt(bits, e.integer(0x7fff));
  Value normal =
      e.addInt(e.shiftLeft(magnitude, 13), e.integer(112 << 23));
  Value special = e.addInt(normal, e.integer(112 << 23));
  Value isNaN = e.compareInt(P::sgt, magnitude, e.integer(0x7c00));
  special = e.select(isNaN, e.orInt(special, e.integer(0x400000)), special);
  Value result = e.select(
      e.compareInt(P::sge, magnitude, e.integer(0x7c00)), special, normal);
  Value subnormal = e.toBits(e.mul(e.toFloat(magnitude), e.number(0x1p-24f)));
  result = e.select(e.compareInt(P::slt, magnitude, e.integer(0x400)),
                    subnormal, result);
  Value sign = e.andInt(bits, e.integer(INT32_MIN));
  return e.fromBits(e.orInt(result, sign));
}

/// bf16 to f32, which is a shift.
static Value createExtFromBF16(OpBuilder &builder, Location loc, Value x,
                               Type type) {
  auto withShape = [&](Type element) -> Type {
    auto vector = dyn_cast<VectorType>(x.getType());
    return vector ? VectorType::get(vector.getShape(), element) : element;
  };
  Value half = arith::BitcastOp::create(builder, loc,
                                        withShape(builder.getI16Type()), x);
  Value bits = arith::ExtUIOp::create(builder, loc,
                                      withShape(builder.getI32Type()), half);
  Expression e(builder, loc,
               arith::BitcastOp::create(builder, loc, type, bits));
  return e.fromBits(e.shiftLeft(bits, 16));
}

/// f32 to fp8 e4m3 (an integer of 8 bits), to nearest, ties to even; what is
/// beyond 448, infinity too, saturates.
static Value createTruncToFP8(OpBuilder &builder, Location loc, Value x) {
  Expression e(builder, loc, x);
  using P = arith::CmpIPredicate;
  Value bits = e.toBits(x);
  Value magnitude = e.andInt(bits, e.integer(0x7fffffff));
  Value isNaN = e.compareInt(P::sgt, magnitude, e.integer(0x7f800000));
  Value most = e.integer(0x43e00000); // 448
  magnitude = e.select(e.compareInt(P::sgt, magnitude, most), most, magnitude);
  // Exponents differ by 120; a carry out of the mantissa is the next power.
  Value odd = e.andInt(e.shiftRight(magnitude, 20), e.integer(1));
  Value normal = e.shiftRight(
      e.addInt(magnitude, e.addInt(odd, e.integer(0x7ffff))), 20);
  normal = e.subInt(normal, e.integer(120 << 3));
  // Below 2^-6 steps are 2^-9, which are those of f32 above 2^14.
  Value offset = e.number(0x1p14f);
  Value subnormal = e.subInt(e.toBits(e.add(e.fromBits(magnitude), offset)),
                             e.toBits(offset));
  Value result = e.select(e.compareInt(P::slt, magnitude, e.integer(121 << 23)),
                          subnormal, normal);
  result = e.select(isNaN, e.integer(0x7f), result);
  Value sign = e.andInt(e.shiftRight(bits, 24), e.integer(0x80));
  return arith::TruncIOp::create(
      builder, loc, e.withElement(builder.getI8Type()), e.addInt(result, sign));
}

/// fp8 e4m3 (an integer of 8 bits) to f32, which is exact.
static Value createExtFromFP8(OpBuilder &builder, Location loc, Value x,
                              Type type) {
  Type wideType = builder.getI32Type();
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    wideType = VectorType::get(vector.getShape(), wideType);
  Value bits = arith::ExtSIOp::create(builder, loc, wideType, x);
  Value shape = arith::BitcastOp::create(builder, loc, type, bits);
  Expression e(builder, loc, shape);
  using P = arith::CmpIPredicate;
  Value magnitude = e.andInt(bits, e.integer(0x7f));
  Value result = e.addInt(e.shiftLeft(magnitude, 20), e.integer(120 << 23));
  Value subnormal = e.toBits(e.mul(e.toFloat(magnitude), e.number(0x1p-9f)));
  result = e.select(e.compareInt(P::slt, magnitude, e.integer(8)), subnormal,
                    result);
  result = e.select(e.compareInt(P::eq, magnitude, e.integer(0x7f)),
                    e.integer(0x7fc00000), result);
  Value sign = e.andInt(bits, e.integer(INT32_MIN));
  return e.fromBits(e.orInt(result, sign));
}

/// A conversion between f32 and a narrow type that takes integers; null if it
/// takes none.
static Value expandConversion(OpBuilder &builder, Operation &op, Value x,
                              Type type, bool convertsHalf) {
  Type from = getElementTypeOrSelf(x), to = getElementTypeOrSelf(type);
  Location loc = op.getLoc();
  if (isa<arith::TruncFOp>(op) && from.isF32() && to.isInteger(8))
    return createTruncToFP8(builder, loc, x);
  if (isa<arith::ExtFOp>(op) && from.isInteger(8) && to.isF32())
    return createExtFromFP8(builder, loc, x, type);
  if (isa<arith::TruncFOp>(op) && from.isF32() && to.isBF16())
    return createTruncToBF16(builder, loc, x, type);
  if (isa<arith::TruncFOp>(op) && from.isF32() && to.isF16() && !convertsHalf)
    return createTruncToF16(builder, loc, x, type);
  if (isa<arith::ExtFOp>(op) && from.isBF16() && to.isF32())
    return createExtFromBF16(builder, loc, x, type);
  if (isa<arith::ExtFOp>(op) && from.isF16() && to.isF32() && !convertsHalf)
    return createExtFromF16(builder, loc, x, type);
  return Value();
}

/// The operation itself, on other operands.
static Value createSame(OpBuilder &builder, Operation &op, ValueRange operands,
                        Type type) {
  OperationState state(op.getLoc(), op.getName());
  state.addOperands(operands);
  state.addTypes(type);
  state.addAttributes(op.getAttrs());
  return builder.create(state)->getResult(0);
}

/// Operations that processors have, on every element type they are used with.
static bool isInstruction(Operation &op) {
  if (isa<arith::RemFOp>(op))
    return false;
  if (op.getName().getDialectNamespace() == "arith")
    return true;
  return isa<math::SqrtOp, math::AbsFOp, math::AbsIOp, math::FloorOp,
             math::CeilOp, math::TruncOp, math::RoundEvenOp, math::CopySignOp>(
      op);
}

/// The f32 expansion of an operation of math; null if it has none.
static Value expandMath(OpBuilder &builder, Operation &op,
                        ValueRange operands) {
  Location loc = op.getLoc();
  if (auto fma = dyn_cast<math::FmaOp>(op))
    return LLVM::FMulAddOp::create(builder, loc, operands[0], operands[1],
                                   operands[2]);
  if (!getElementTypeOrSelf(op.getResult(0)).isF32())
    return Value();
  Value x = operands[0];
  return llvm::TypeSwitch<Operation *, Value>(&op)
      .Case([&](math::ExpOp) { return createExp(builder, loc, x); })
      .Case([&](math::LogOp) { return createLog(builder, loc, x); })
      .Case([&](math::Log1pOp) { return createLog1p(builder, loc, x); })
      .Case([&](math::RsqrtOp) {
        Expression e(builder, loc, x);
        Value root = math::SqrtOp::create(builder, loc, x);
        return e.div(e.number(1.0f), root);
      })
      .Default([](Operation *) { return Value(); });
}

LogicalResult sinkstate::cpu::createElementwise(OpBuilder &builder,
                                                Operation &op,
                                                ValueRange operands, Type type,
                                                bool convertsHalf,
                                                Value &result) {
  if (!operands.empty())
    result = expandConversion(builder, op, operands[0], type, convertsHalf);
  if (result)
    return success();
  if (isInstruction(op)) {
    result = createSame(builder, op, operands, type);
    return success();
  }
  result = expandMath(builder, op, operands);
  if (result)
    return success();
  return op.emitError("'")
         << op.getName() << "' on " << op.getOperand(0).getType()
         << " would need a C library, expected exp, log, log1p or rsqrt of "
            "f32, or sqrt, absf, floor, ceil, trunc, roundeven, copysign, fma";
}
