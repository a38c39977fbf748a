//===- SSDecodeOps.cpp - What one token does ------------------------------===//

#include "dialect/ss/SSOpShapes.h"

using namespace mlir;
using namespace sinkstate::ss;

LogicalResult sinkstate::ss::verifyShape(Operation *op, StringRef what,
                                         RankedTensorType type,
                                         ArrayRef<int64_t> shape,
                                         StringRef meaning) {
  if (type.getShape() == shape)
    return success();
  return op->emitOpError("has '")
         << what << "' of type " << type << ", expected "
         << RankedTensorType::get(shape, type.getElementType()) << " ("
         << meaning << ")";
}

//===----------------------------------------------------------------------===//
// Keys, gates and weights
//===----------------------------------------------------------------------===//

/// The tensor has the given number of dimensions, named by `meaning`.
static LogicalResult verifyRank(Operation *op, StringRef what,
                                RankedTensorType type, int64_t rank,
                                StringRef meaning) {
  if (type.getRank() == rank)
    return success();
  return op->emitOpError("has '")
         << what << "' of type " << type << ", expected " << meaning;
}

static LogicalResult verifyScale(Operation *op, const APFloat &scale) {
  if (scale.isFiniteNonZero())
    return success();
  return op->emitOpError("has scale ")
         << formatNumber(scale.convertToDouble())
         << ", expected a finite number other than 0";
}

LogicalResult NormalizeOp::verify() {
  if (failed(verifyScale(*this, getScale())))
    return failure();
  return verifyRank(*this, "input", getInput().getType(), 2, "[key_heads, dk]");
}

LogicalResult LogDecayOp::verify() {
  RankedTensorType input = getInput().getType();
  bool channel = getGate().isChannel();
  if (failed(verifyRank(*this, "input", input, channel ? 2 : 1,
                        channel ? "[heads, dk]" : "[heads]")))
    return failure();
  return verifyShape(*this, "a_log", getALog().getType(), {input.getDimSize(0)},
                     "heads");
}

LogicalResult WriteWeightOp::verify() {
  if (failed(verifyScale(*this, getScale())))
    return failure();
  return verifyRank(*this, "beta", getBeta().getType(), 1, "[heads]");
}

LogicalResult TimeStepOp::verify() {
  return verifyRank(*this, "input", getInput().getType(), 1, "[heads]");
}

//===----------------------------------------------------------------------===//
// ss.fold
//===----------------------------------------------------------------------===//

bool FoldOp::readsRows() { return true; }
bool FoldOp::writesRows() { return true; }
bool FoldOp::readsBuffer() { return true; }
bool FoldOp::writesBuffer() { return true; }

LogicalResult FoldOp::verify() {
  if (getState().getType().isDeferred())
    return success();
  return emitOpError("has a ")
         << stringifyEnum(getState().getType().getForm())
         << " state, expected form = deferred";
}

//===----------------------------------------------------------------------===//
// ss.decay: in factored states only the running log-decay moves
//===----------------------------------------------------------------------===//

bool DecayOp::readsRows() { return getState().getType().isDense(); }
bool DecayOp::writesRows() { return getState().getType().isDense(); }
bool DecayOp::writesBuffer() { return getState().getType().hasBuffer(); }

LogicalResult DecayOp::verify() {
  StateType state = getState().getType();
  if (state.getInfo().channelDecay)
    return verifyShape(*this, "log_decay", getLogDecay().getType(),
                       {state.getHeads(), state.getDk()}, "heads, dk");
  return verifyShape(*this, "log_decay", getLogDecay().getType(),
                     {state.getHeads()}, "heads");
}

//===----------------------------------------------------------------------===//
// ss.append: only the delta rule reads what is stored
//===----------------------------------------------------------------------===//

bool AppendOp::readsRows() {
  StateType state = getState().getType();
  return state.isDense() || state.getInfo().theta != 0;
}
bool AppendOp::writesRows() { return getState().getType().isDense(); }
bool AppendOp::readsBuffer() {
  StateType state = getState().getType();
  return state.hasBuffer() && state.getInfo().theta != 0;
}
bool AppendOp::writesBuffer() { return getState().getType().hasBuffer(); }

LogicalResult AppendOp::verify() {
  StateType state = getState().getType();
  if (failed(verifyShape(*this, "key", getKey().getType(),
                         {state.getKeyHeads(), state.getDk()},
                         "key_heads, dk")) ||
      failed(verifyShape(*this, "value", getValue().getType(),
                         {state.getHeads(), state.getDv()}, "heads, dv")))
    return failure();
  return verifyShape(*this, "weight", getWeight().getType(), {state.getHeads()},
                     "heads");
}

//===----------------------------------------------------------------------===//
// ss.readout
//===----------------------------------------------------------------------===//

bool ReadoutOp::readsRows() { return true; }
bool ReadoutOp::readsBuffer() { return getState().getType().hasBuffer(); }

LogicalResult ReadoutOp::verify() {
  StateType state = getState().getType();
  if (failed(verifyShape(*this, "query", getQuery().getType(),
                         {state.getKeyHeads(), state.getDk()},
                         "key_heads, dk")))
    return failure();
  return verifyShape(*this, "result", getResult().getType(),
                     {state.getHeads(), state.getDv()}, "heads, dv");
}
