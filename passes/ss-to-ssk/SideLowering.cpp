//===- SideLowering.cpp - a compaction without singular values ------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// The block is H = A^T S B with the rows A of one side, B of the other and the
// weights S. B is orthogonalised with the weights folded in: R = T S B B^T S and
// Q = T S B, so that H = (R A)^T Q. Then the rows of R A are, through their Gram
// matrix R (A A^T) R^T: H = Q_2^T R_2 Q. The rows of A become Q_2; those of B
// become the rows of R_2 Q of unit length, and their lengths the weights.
//
// Apart from the rows this takes four m x m matrices: X^T (that is R), T of B,
// the second Gram matrix (that becomes R_2) and T of A.
//
//===----------------------------------------------------------------------===//
#include "CompactLowering.h"
#include <cmath>

using namespace mlir;

namespace sinkstate {

/// What is below this share of a block's largest component is rounding of its
/// f32 rows.
static const double kNoiseShare = std::ldexp(1.0, -22);

/// A pivot below this share of it may come from cancellation, of which the Gram
/// matrix of R A keeps too few digits for rows that are orthonormal to 1e-5.
static constexpr double kUncertainShare = 1e-5;

LogicalResult CompactLowering::orthogonalizeSide(ss::OrthogonalizeSideOp op) {
  bool isLeft = op.getSide() == ss::Side::left;
  BlockSide &side = isLeft ? left : right;
  if (hasBothSides || firstSide == op.getSide())
    return op.emitOpError("comes after one of the same side, expected each side "
                          "once between ss.concat and ss.merge");
  if (!firstSide) {
    firstSide = op.getSide();
    orthogonalizeFirst(side);
  } else {
    hasBothSides = true;
    orthogonalizeSecond(side, isLeft ? right : left);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The first side
//===----------------------------------------------------------------------===//

void CompactLowering::foldWeights(BlockSide &side) {
  Value zero = k.index(0), count = k.index(m);
  Type row = matrixRow();
  Value s = k.load(row, blockWeights, zero);
  k.loop(zero, count, 1, [&](Value i) {
    Value own = k.read(blockWeights, i);
    Value scaled =
        k.map(row, {k.load(row, side.r, {i, zero}), s}, [&](ValueRange e) {
          return k.mul(k.mul(e[0], e[1]), own);
        });
    k.store(scaled, side.r, {i, zero});
  });
}

void CompactLowering::orthogonalizeFirst(BlockSide &side) {
  Value zero = k.index(0), count = k.index(m);
  Type row = matrixRow();
  side.r = matrix("x_t");
  side.t = matrix("t_first");
  k.note("orthogonalise one side, weights folded in: Q = T S B, R = T S B B^T S");
  k.matmul(side.rows, side.rows, side.r, false, true);
  foldWeights(side);
  Value again = callOrthogonalize(side.r, side.t);
  // Columns of T take the weights, squared columns of R say how long the rows
  // of S B are.
  Value s = k.load(row, blockWeights, zero);
  Values squares = k.loop(
      zero, count, 1, {k.splat(row, k.wide(0))},
      [&](Value i, ValueRange carried) -> Values {
        scaleRow(side.t, i, s);
        return {k.map(row, {k.load(row, side.r, {i, zero}), carried[0]},
                      [&](ValueRange e) { return k.fma(e[0], e[0], e[1]); })};
      });
  magnitudes = k.name("magnitudes", k.shared({m}, k.f64()));
  k.store(squares[0], magnitudes, zero);
  k.branch(again, [&] {
    orthogonalizeAgain(side, side.r, k.name("gram", k.shared({m, m}, k.f64())));
  });
}

//===----------------------------------------------------------------------===//
// The second side
//===----------------------------------------------------------------------===//

Value CompactLowering::largestComponent(Value gram) {
  k.note("the block's largest component");
  Value zero = k.index(0);
  k.loop(zero, k.index(m), 1, [&](Value i) {
    Value product = k.mul(k.read(gram, {i, i}), k.read(magnitudes, i));
    k.write(product, magnitudes, i);
  });
  return k.name("largest_component",
                k.sqrt(k.reduceMax(k.load(matrixRow(), magnitudes, zero))));
}

void CompactLowering::measureLengths(Value r) {
  Value zero = k.index(0);
  k.loop(zero, k.index(m), 1, [&](Value i) {
    Value row = k.load(matrixRow(), r, {i, zero});
    k.write(k.sqrt(k.dot(row, row)), sigma, i);
    k.write(k.read(r, {i, i}), pivots, i);
  });
}

/// Whether a component that may be kept has an uncertain pivot.
Value CompactLowering::isUncertain(Value largest) {
  Value zero = k.index(0);
  Type row = matrixRow();
  Value lengths = k.load(row, sigma, zero);
  Value lowest = k.wide(0);
  for (auto op : fused.getBody().getOps<ss::TruncateOp>())
    if (op.getPolicy().getKind() == ss::PolicyKind::relative)
      lowest = k.mul(k.reduceMax(lengths),
                     k.extend(t.arguments["policy_value"]));
  Value most = k.mul(largest, k.wide(kUncertainShare));
  Value marks = k.map(
      row, {k.load(row, pivots, zero), lengths}, [&](ValueRange e) {
        Value small = k.both(k.less(k.wide(0), e[0]), k.less(e[0], most));
        return k.select(k.both(small, k.atLeast(e[1], lowest)), k.wide(1),
                        k.wide(0));
      });
  return k.less(k.wide(0), k.reduceMax(marks));
}

void CompactLowering::normaliseRows(Value r) {
  Value zero = k.index(0);
  k.loop(zero, k.index(m), 1, [&](Value i) {
    Value length = k.read(sigma, i);
    Value isZero = k.equal(length, k.wide(0));
    Value inverse =
        k.name("inverse", k.select(isZero, k.wide(0), k.div(k.wide(1), length)));
    scaleRow(r, i, k.splat(matrixRow(), inverse));
    k.write(k.narrow(length), newWeights, i);
  });
}

void CompactLowering::orthogonalizeSecond(BlockSide &side, BlockSide &first) {
  side.r = matrix("r_second");
  side.t = matrix("t_second");
  pivots = k.name("pivots", k.shared({m}, k.f64()));
  k.note("Gram matrix of the other side: A A^T");
  k.matmul(side.rows, side.rows, side.r, false, true);
  Value largest = largestComponent(side.r);
  noise = k.name("noise", k.narrow(k.mul(largest, k.wide(kNoiseShare))));
  k.note("of R A: R (A A^T) R^T; its T is multiplied with R");
  k.matmul(first.r, side.r, side.r, false, false);
  k.matmul(side.r, first.r, side.r, false, true);
  Value isIll = callOrthogonalize(side.r, side.t);
  k.matmul(side.t, first.r, side.t, false, false);
  measureLengths(side.r);
  Value again = k.either(isIll, isUncertain(largest));
  k.branch(again, [&] {
    orthogonalizeAgain(side, side.r, first.r);
    measureLengths(side.r);
  });
  k.note("rows: orthonormal ones here, there their parts of unit length");
  k.matmul(side.t, side.rows, side.rows, false, false);
  normaliseRows(side.r);
  k.matmul(side.r, first.t, side.r, false, false);
  k.matmul(side.r, first.rows, first.rows, false, false);
  newOrder = k.name("new_order", k.shared({m}, k.i32()));
}

} // namespace sinkstate
