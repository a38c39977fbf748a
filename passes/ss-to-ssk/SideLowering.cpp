//===- SideLowering.cpp - a compaction without singular values ------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// The block is H = A^T S B with the rows A of one side, B of the other and the
// weights S. B is orthogonalised with the weights and the lengths of A's rows
// folded in (which makes the largest component the first pivot, and unfolded
// again): H = (R A)^T Q, Q = T B. Then the rows of R A are, through their Gram
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
    orthogonalizeFirst(side, isLeft ? right : left);
  } else {
    hasBothSides = true;
    orthogonalizeSecond(side, isLeft ? right : left);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The first side
//===----------------------------------------------------------------------===//

/// Into `sizes` goes the weight of every component times its length on the
/// other side, into `lengths` that length.
void CompactLowering::measureComponents(BlockSide &other) {
  Value zero = k.index(0);
  Type row = matrixRow();
  lengths = k.name("lengths", k.shared({m}, k.f64()));
  sizes = k.name("sizes", k.shared({m}, k.f64()));
  k.loop(zero, k.index(m), 1, [&](Value i) {
    k.write(k.read(other.r, {i, i}), lengths, i);
  });
  Value length = k.map(row, k.load(row, lengths, zero),
                       [&](ValueRange e) { return k.sqrt(e[0]); });
  k.store(length, lengths, zero);
  k.store(k.map(row, {length, k.load(row, blockWeights, zero)},
                [&](ValueRange e) { return k.mul(e[0], e[1]); }),
          sizes, zero);
}

/// G = S B B^T S from B B^T, S the sizes.
void CompactLowering::foldSizes(Value gram) {
  Value zero = k.index(0);
  Type row = matrixRow();
  Value s = k.load(row, sizes, zero);
  k.loop(zero, k.index(m), 1, [&](Value i) {
    Value own = k.read(sizes, i);
    Value scaled =
        k.map(row, {k.load(row, gram, {i, zero}), s}, [&](ValueRange e) {
          return k.mul(k.mul(e[0], e[1]), own);
        });
    k.store(scaled, gram, {i, zero});
  });
}

/// Makes T and R of S B those of B and of the other side as it is. The squares
/// of the columns of R are those of the components; returns the largest one's
/// root.
Value CompactLowering::unfoldSizes(BlockSide &side) {
  Value zero = k.index(0);
  Type row = matrixRow();
  Value s = k.load(row, sizes, zero);
  Value inverse =
      k.map(row, k.load(row, lengths, zero), [&](ValueRange e) {
        return k.select(k.equal(e[0], k.wide(0)), k.wide(0),
                        k.div(k.wide(1), e[0]));
      });
  Values squares = k.loop(
      zero, k.index(m), 1, {k.splat(row, k.wide(0))},
      [&](Value i, ValueRange carried) -> Values {
        scaleRow(side.t, i, s);
        Value r = k.load(row, side.r, {i, zero});
        k.store(k.map(row, {r, inverse},
                      [&](ValueRange e) { return k.mul(e[0], e[1]); }),
                side.r, {i, zero});
        return {k.map(row, {r, carried[0]}, [&](ValueRange e) {
          return k.fma(e[0], e[0], e[1]);
        })};
      });
  return k.name("largest_component", k.sqrt(k.reduceMax(squares[0])));
}

void CompactLowering::orthogonalizeFirst(BlockSide &side, BlockSide &other) {
  side.r = matrix("x_t");
  side.t = matrix("t_first");
  other.r = matrix("r_second");
  other.t = matrix("t_second");
  k.note("Gram matrix of the other side, A A^T, and the components' sizes S");
  k.matmul(other.rows, other.rows, other.r, false, true);
  measureComponents(other);
  k.note("orthogonalise one side, sizes folded in: Q = T S B, R = T S B B^T S");
  k.matmul(side.rows, side.rows, side.r, false, true);
  foldSizes(side.r);
  Value again = callOrthogonalize(side.r, side.t);
  largest = unfoldSizes(side);
  noise = k.name("noise", k.narrow(k.mul(largest, k.wide(kNoiseShare))));
  k.branch(again, [&] { orthogonalizeAgain(side, side.r, other.t); });
}

//===----------------------------------------------------------------------===//
// The second side
//===----------------------------------------------------------------------===//

void CompactLowering::measureLengths(Value r) {
  Value zero = k.index(0);
  k.loop(zero, k.index(m), 1, [&](Value i) {
    Value row = k.load(matrixRow(), r, {i, zero});
    k.write(k.sqrt(k.dot(row, row)), sigma, i);
    k.write(k.read(r, {i, i}), pivots, i);
  });
}

/// Whether a component that may be kept has an uncertain pivot.
Value CompactLowering::isUncertain() {
  Value zero = k.index(0);
  Type row = matrixRow();
  Value weights = k.load(row, sigma, zero);
  Value lowest = k.wide(0);
  for (auto op : fused.getBody().getOps<ss::TruncateOp>())
    if (op.getPolicy().getKind() == ss::PolicyKind::relative)
      lowest = k.mul(k.reduceMax(weights),
                     k.extend(t.arguments["policy_value"]));
  Value most = k.mul(largest, k.wide(kUncertainShare));
  Value marks = k.map(
      row, {k.load(row, pivots, zero), weights}, [&](ValueRange e) {
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
  pivots = k.name("pivots", k.shared({m}, k.f64()));
  k.note("Gram matrix of R A: R (A A^T) R^T; its T is multiplied with R");
  k.matmul(first.r, side.r, side.r, false, false);
  k.matmul(side.r, first.r, side.r, false, true);
  Value isIll = callOrthogonalize(side.r, side.t);
  k.matmul(side.t, first.r, side.t, false, false);
  measureLengths(side.r);
  Value again = k.either(isIll, isUncertain());
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
