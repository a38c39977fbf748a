//===- SSCompactOps.cpp - Compaction and conversions ----------------------===//

#include "dialect/ss/SSOpShapes.h"

using namespace mlir;
using namespace sinkstate::ss;

LogicalResult sinkstate::ss::verifyFactored(Operation *op, StateType state) {
  if (state.isFactored())
    return success();
  return op->emitOpError("has a dense state, expected form = factored");
}

LogicalResult sinkstate::ss::verifyFactors(Operation *op, StringRef what,
                                           FactorsType factors, StateType state,
                                           int64_t rows,
                                           StringRef rowsMeaning) {
  auto expected = FactorsType::get(op->getContext(), state.getHeads(), rows,
                                   state.getDv(), state.getDk());
  if (factors == expected)
    return success();
  return op->emitOpError("has '")
         << what << "' of type " << factors << ", expected " << expected << " ("
         << rowsMeaning << " rows of the state's sizes)";
}

/// The tensor is [heads, m, m] of a block of m rows.
static LogicalResult verifySquare(Operation *op, StringRef what,
                                  RankedTensorType type, FactorsType block) {
  return verifyShape(op, what, type,
                     {block.getHeads(), block.getRows(), block.getRows()},
                     "heads, rows, rows");
}

//===----------------------------------------------------------------------===//
// ss.split, ss.concat
//===----------------------------------------------------------------------===//

bool SplitOp::readsRows() { return true; }
bool SplitOp::readsBuffer() { return true; } // the running log-decay
// A decay by channel cannot be folded into the weights: it changes the rows.
bool SplitOp::writesRows() {
  return getState().getType().getInfo().channelDecay;
}

LogicalResult SplitOp::verify() {
  StateType state = getState().getType();
  if (failed(verifyFactored(*this, state)))
    return failure();
  return verifyFactors(*this, "active", getActive().getType(), state,
                       state.getActive(), "active");
}

bool ConcatOp::readsBuffer() { return true; }
bool ConcatOp::writesBuffer() { return true; }

LogicalResult ConcatOp::verify() {
  StateType state = getFrozen().getType();
  if (failed(verifyFactored(*this, state)) ||
      failed(verifyFactors(*this, "active", getActive().getType(), state,
                           state.getActive(), "active")))
    return failure();
  return verifyFactors(*this, "block", getBlock().getType(), state,
                       state.getBlockRows(), "active + buffer + draft");
}

//===----------------------------------------------------------------------===//
// The small matrices
//===----------------------------------------------------------------------===//

LogicalResult OrthogonalizeOp::verify() {
  FactorsType block = getBlock().getType();
  if (failed(verifySquare(*this, "left", getLeft().getType(), block)))
    return failure();
  return verifySquare(*this, "right", getRight().getType(), block);
}

LogicalResult CoreOp::verify() {
  return verifySquare(*this, "left", getLeft().getType(), getBlock().getType());
}

LogicalResult CoreSvdOp::verify() {
  RankedTensorType core = getCore().getType();
  if (core.getRank() != 3 || core.getDimSize(1) != core.getDimSize(2))
    return emitOpError("has 'core' of type ")
           << core << ", expected [heads, m, m]";
  return verifyShape(*this, "sigma", getSigma().getType(),
                     {core.getDimSize(0), core.getDimSize(1)}, "heads, m");
}

LogicalResult RotateOp::verify() {
  FactorsType basis = getBasis().getType();
  if (failed(verifySquare(*this, "x", getX().getType(), basis)) ||
      failed(verifySquare(*this, "y", getY().getType(), basis)))
    return failure();
  return verifyShape(*this, "sigma", getSigma().getType(),
                     {basis.getHeads(), basis.getRows()}, "heads, rows");
}

//===----------------------------------------------------------------------===//
// ss.merge, ss.truncate
//===----------------------------------------------------------------------===//

bool MergeOp::writesRows() { return true; }

LogicalResult MergeOp::verify() {
  StateType state = getFrozen().getType();
  if (failed(verifyFactored(*this, state)))
    return failure();
  return verifyFactors(*this, "rotated", getRotated().getType(), state,
                       state.getBlockRows(), "active + buffer + draft");
}

bool TruncateOp::writesRows() { return true; }

LogicalResult TruncateOp::verify() {
  StateType state = getState().getType();
  if (failed(verifyFactored(*this, state)))
    return failure();
  PolicyAttr policy = getPolicy();
  if (policy.isFixed() && policy.getCount() > state.getRank())
    return emitOpError("keeps a fixed rank of ")
           << policy.getCount() << ", expected at most the state's, "
           << state.getRank();
  return success();
}

//===----------------------------------------------------------------------===//
// ss.init, ss.consolidate, ss.densify
//===----------------------------------------------------------------------===//

static LogicalResult verifyEps(Operation *op, const APFloat &number) {
  double eps = number.convertToDouble();
  if (eps >= 0 && eps < 1)
    return success();
  return op->emitOpError("has eps ")
         << formatNumber(eps) << ", expected 0 <= eps < 1";
}

bool InitOp::writesRows() { return true; }
bool InitOp::writesBuffer() { return getState().getType().isFactored(); }

LogicalResult InitOp::verify() {
  StateType state = getState().getType();
  if (failed(verifyEps(*this, getEps())))
    return failure();
  return verifyShape(*this, "dense", getDense().getType(),
                     {state.getHeads(), state.getDv(), state.getDk()},
                     "heads, dv, dk");
}

bool ConsolidateOp::readsRows() { return true; }
bool ConsolidateOp::writesRows() { return true; }

LogicalResult ConsolidateOp::verify() {
  if (failed(verifyFactored(*this, getState().getType())))
    return failure();
  return verifyEps(*this, getEps());
}

bool DensifyOp::readsRows() { return true; }
bool DensifyOp::readsBuffer() { return getState().getType().isFactored(); }
StateAxis DensifyOp::parallelAxes() {
  return StateAxis::heads | StateAxis::channels;
}

LogicalResult DensifyOp::verify() {
  StateType state = getState().getType();
  return verifyShape(*this, "dense", getDense().getType(),
                     {state.getHeads(), state.getDk(), state.getDv()},
                     "heads, dk, dv");
}
