//===- CoreLowering.cpp - a compaction's core by singular values ----------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "CompactLowering.h"
#include "sinkstate/routines.h"

using namespace mlir;

namespace sinkstate {

void CompactLowering::addStatus(Value bits) {
  Value before = k.read(status, k.index(0));
  k.write(k.bitOr(before, bits), status, k.index(0));
}

void CompactLowering::overMatrix(
    llvm::function_ref<void(int64_t, Value)> body) {
  int64_t rows = largestDivisor(m, 16);
  if (rows == m)
    return body(rows, k.index(0));
  k.loop(k.index(0), k.index(m), rows, [&](Value first) { body(rows, first); });
}

void CompactLowering::scaleMatrix(Value matrix, Value ofRows,
                                  Value ofColumns) {
  Value zero = k.index(0);
  overMatrix([&](int64_t rows, Value first) {
    Type tile = k.lanes({rows, m}, k.f64());
    Values inputs = {k.load(tile, matrix, {first, zero})};
    SmallVector<SmallVector<int64_t>> dims = {{0, 1}};
    if (ofColumns) {
      inputs.push_back(k.load(matrixRow(), ofColumns, zero));
      dims.push_back({1});
    }
    if (ofRows) {
      inputs.push_back(k.load(k.replicated({rows}, k.f64()), ofRows, first));
      dims.push_back({0});
    }
    Value scaled = k.map(tile, inputs, dims, [&](ValueRange e) {
      Value x = k.mul(e[0], e[1]);
      return e.size() == 3 ? k.mul(x, e[2]) : x;
    });
    k.store(scaled, matrix, {first, zero});
  });
}

Value CompactLowering::callOrthogonalize(Value gram, Value factor) {
  Value bits = k.name("bits", k.call("ss_orthogonalize",
                                     {k.integer(m), gram, factor}, {1}, {1, 2}));
  addStatus(k.bitAnd(bits, k.integer(SS_STATUS_NOT_FINITE)));
  return k.less(k.integer(0),
                k.bitAnd(bits, k.integer(SS_STATUS_ILL_CONDITIONED)));
}

void CompactLowering::orthogonalizeAgain(BlockSide &side, Value r,
                                         Value scratch) {
  k.note("ill-conditioned: form Q and orthogonalise it once more");
  k.matmul(side.t, side.rows, side.rows, false, false);
  k.matmul(side.rows, side.rows, scratch, false, true);
  callOrthogonalize(scratch, side.t);
  k.matmul(scratch, r, r, false, false);
}

Value CompactLowering::orthogonalizeAlone(BlockSide &side, Value scratch) {
  k.matmul(side.rows, side.rows, side.r, false, true);
  Value again = callOrthogonalize(side.r, side.t);
  if (scratch)
    k.branch(again, [&] { orthogonalizeAgain(side, side.r, scratch); });
  return again;
}

void CompactLowering::orthogonalize() {
  for (BlockSide *side : {&left, &right}) {
    side->t = matrix(side == &left ? "t_left" : "t_right");
    side->r = matrix(side == &left ? "r_left" : "r_right");
  }
  if (sparesScratch)
    return orthogonalizeSparingly();
  yt = matrix("yt");
  k.note("orthogonalise the left side: Q = T A, R = T A A^T");
  orthogonalizeAlone(left, yt);
  askAhead();
  k.note("orthogonalise the right side");
  orthogonalizeAlone(right, yt);
}

void CompactLowering::formOrthonormal(BlockSide &side) {
  k.matmul(side.t, side.rows, side.rows, false, false);
}

void CompactLowering::orthogonalizeSparingly() {
  k.note("orthogonalise the left side: R = T A A^T, and Q = T A at once");
  orthogonalizeAlone(left, matrix("again"));
  formOrthonormal(left);
  askAhead();
  k.note("orthogonalise the right side");
  isRightIll = orthogonalizeAlone(right, Value());
}

void CompactLowering::core() {
  k.note("core C = R_L diag(s) R_R^T");
  scaleMatrix(left.r, Value(), blockWeights);
  k.matmul(left.r, right.r, left.r, false, true);
  if (!sparesScratch)
    return;
  // R_R is R_2 R where Q is orthogonalised once more, and C then C R_2^T: R_2
  // takes the place of R, which C has.
  k.branch(isRightIll, [&] {
    k.note("ill-conditioned: form Q and orthogonalise it once more");
    formOrthonormal(right);
    k.matmul(right.rows, right.rows, right.r, false, true);
    callOrthogonalize(right.r, right.t);
    k.matmul(left.r, right.r, left.r, false, true);
  });
  formOrthonormal(right);
  yt = matrix("yt");
}

void CompactLowering::coreSvd() {
  askAhead();
  k.note("C = X diag(sigma) Y^T");
  // X^T takes the place of R_R, which nobody needs any more.
  addStatus(k.call("ss_core_svd", {k.integer(m), left.r, right.r, sigma, yt},
                   {1}, {1, 2, 3, 4}));
}

void CompactLowering::rotate() {
  if (sparesScratch) {
    k.note("rotated rows: U' = X^T Q_L, V' = Y^T Q_R");
    formRows(left, right.r);
    formRows(right, yt);
  } else {
    k.note("rotated rows: U' = (X^T T_L) A_L, V' = (Y^T T_R) A_R");
    formRows(left, right.r, left.t, left.t);
    formRows(right, yt, right.t, right.t);
  }
  Value wide = k.load(matrixRow(), sigma, k.index(0));
  Value narrow = k.map(k.lanes({m}), wide,
                       [&](ValueRange e) { return k.narrow(e[0]); });
  k.store(narrow, newWeights, k.index(0));
}

} // namespace sinkstate
