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

/// Makes T and R of S B those of B and of the other side as it is. The squares
/// of the columns of R are those of the components; returns the largest one's
/// root.
Value CompactLowering::unfoldSizes(BlockSide &side) {
  Value zero = k.index(0);
  Type row = matrixRow();
  scaleMatrix(side.t, Value(), sizes);
  Value inverse =
      k.map(row, k.load(row, lengths, zero), [&](ValueRange e) {
        return k.select(k.equal(e[0], k.wide(0)), k.wide(0),
                        k.div(k.wide(1), e[0]));
      });
  int64_t rows = largestDivisor(m, 16);
  Values squares = k.loop(
      zero, k.index(m), rows, {k.splat(row, k.wide(0))},
      [&](Value first, ValueRange carried) -> Values {
        Type tile = k.lanes({rows, m}, k.f64());
        Value r = k.load(tile, side.r, {first, zero});
        k.store(k.map(tile, {r, inverse}, {{0, 1}, {1}},
                      [&](ValueRange e) { return k.mul(e[0], e[1]); }),
                side.r, {first, zero});
        Value square =
            k.map(tile, r, [&](ValueRange e) { return k.mul(e[0], e[0]); });
        return {k.map(row, {k.reduceAdd(square, 0), carried[0]},
                      [&](ValueRange e) { return k.add(e[0], e[1]); })};
      });
  return k.name("largest_component", k.sqrt(k.reduceMax(squares[0])));
}

void CompactLowering::orthogonalizeFirst(BlockSide &side, BlockSide &other) {
  side.r = matrix("x_t");
  side.t = matrix("t_first");
  // Its diagonal is what is wanted first: where scratch is short the rest is
  // computed when the first side is done.
  other.r = matrix(sparesScratch ? "squares" : "r_second");
  other.t = matrix("t_second");
  k.note("Gram matrix of the other side, A A^T, and the components' sizes S");
  askAhead();
  k.matmul(other.rows, other.rows, other.r, false, true);
  askAhead();
  measureComponents(other);
  k.note("orthogonalise one side, sizes folded in: Q = T S B, R = T S B B^T S");
  k.matmul(side.rows, side.rows, side.r, false, true);
  askAhead();
  scaleMatrix(side.r, sizes, sizes);
  askAhead();
  Value again = callOrthogonalize(side.r, side.t);
  askAhead();
  largest = unfoldSizes(side);
  noise = k.name("noise", k.narrow(k.mul(largest, k.wide(kNoiseShare))));
  k.branch(again, [&] { orthogonalizeAgain(side, side.r, other.t); });
  if (sparesScratch)
    formOrthonormal(side);
}

//===----------------------------------------------------------------------===//
// The second side
//===----------------------------------------------------------------------===//

void CompactLowering::measureLengths(Value r) {
  // A lane takes a row: no sum over lanes.
  Value zero = k.index(0);
  int64_t columns = largestDivisor(m, 16);
  Type tile = k.lanesOfRows({m, columns}, k.f64());
  Values squares = k.loop(
      zero, k.index(m), columns, {k.splat(matrixRow(), k.wide(0))},
      [&](Value first, ValueRange carried) -> Values {
        Value x = k.load(tile, r, {zero, first});
        Value square =
            k.map(tile, x, [&](ValueRange e) { return k.mul(e[0], e[0]); });
        return {k.map(matrixRow(), {k.reduceAdd(square, 1), carried[0]},
                      [&](ValueRange e) { return k.add(e[0], e[1]); })};
      });
  k.store(k.map(matrixRow(), squares[0],
                [&](ValueRange e) { return k.sqrt(e[0]); }),
          sigma, zero);
}

/// Whether a component that may be kept has an uncertain pivot.
Value CompactLowering::isUncertain(Value r) {
  Value lowest = k.wide(0);
  for (auto op : fused.getBody().getOps<ss::TruncateOp>())
    if (op.getPolicy().getKind() == ss::PolicyKind::relative)
      lowest = k.mul(k.reduceMax(k.load(matrixRow(), sigma, k.index(0))),
                     k.extend(t.arguments["policy_value"]));
  Value most = k.mul(largest, k.wide(kUncertainShare));
  Values uncertain = k.loop(
      k.index(0), k.index(m), 1, {k.index(0)},
      [&](Value i, ValueRange count) -> Values {
        Value pivot = k.read(r, {i, i});
        Value small = k.both(k.less(k.wide(0), pivot), k.less(pivot, most));
        Value mark = k.both(small, k.atLeast(k.read(sigma, i), lowest));
        return {k.add(count[0], k.select(mark, k.index(1), k.index(0)))};
      });
  return k.less(k.index(0), uncertain[0]);
}

void CompactLowering::normaliseRows(Value r) {
  Value zero = k.index(0);
  Value lengths = k.load(matrixRow(), sigma, zero);
  inverseLengths = k.name("inverse_lengths", k.shared({m}, k.f64()));
  k.store(k.map(matrixRow(), lengths,
                [&](ValueRange e) {
                  return k.select(k.equal(e[0], k.wide(0)), k.wide(0),
                                  k.div(k.wide(1), e[0]));
                }),
          inverseLengths, zero);
  k.store(k.map(k.lanes({m}), lengths,
                [&](ValueRange e) { return k.narrow(e[0]); }),
          newWeights, zero);
  scaleMatrix(r, inverseLengths, Value());
}

void CompactLowering::orthogonalizeSecond(BlockSide &side, BlockSide &first) {
  k.note("Gram matrix of R A: R (A A^T) R^T; its T is multiplied with R");
  if (sparesScratch) {
    side.r = matrix("r_second");
    k.matmul(side.rows, side.rows, side.r, false, true);
  }
  k.matmul(first.r, side.r, side.r, false, false);
  askAhead();
  k.matmul(side.r, first.r, side.r, false, true);
  askAhead();
  Value isIll = callOrthogonalize(side.r, side.t);
  askAhead();
  k.matmul(side.t, first.r, side.t, false, false);
  askAhead();
  measureLengths(side.r);
  Value again = k.either(isIll, isUncertain(side.r));
  k.branch(again, [&] {
    orthogonalizeAgain(side, side.r, first.r);
    measureLengths(side.r);
  });
  k.note("rows: orthonormal ones here, there their parts of unit length");
  formRows(side, side.t);
  normaliseRows(side.r);
  if (sparesScratch)
    formRows(first, side.r);
  else
    formRows(first, side.r, first.t, side.r);
  newOrder = k.name("new_order", k.shared({m}, k.i32()));
}

} // namespace sinkstate
