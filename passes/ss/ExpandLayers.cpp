//===- ExpandLayers.cpp - ss-expand-layers --------------------------------===//

#include "passes/ss/Passes.h"

#include "sinkstate/routines.h"

#include "llvm/ADT/StringSet.h"

#include <algorithm>

using namespace mlir;

namespace sinkstate::ss {
#define GEN_PASS_DEF_SSEXPANDLAYERS
#include "passes/ss/Passes.h.inc"
} // namespace sinkstate::ss

using namespace sinkstate::ss;

namespace {

/// Writes the functions of one layer.
class LayerExpander {
public:
  LayerExpander(OpBuilder &builder, LayerOp layer)
      : builder(builder), layer(layer), loc(layer.getLoc()),
        state(layer.getStateType()), heads(layer.getHeads()),
        keyHeads(layer.getKeyHeads()), dv(layer.getDv()), dk(layer.getDk()) {}

  func::FuncOp decode();
  func::FuncOp compact();
  func::FuncOp densify();
  func::FuncOp init();

private:
  Value rotateBySvd(Value block);
  Value rotateByQr(Value block);
  func::FuncOp start(StringRef role, ArrayRef<Type> inputs,
                     ArrayRef<Type> results);
  RankedTensorType tensor(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  FactorsType factors(int64_t rows) {
    return FactorsType::get(builder.getContext(), heads, rows, dv, dk);
  }
  FloatAttr scale(double value) { return builder.getF64FloatAttr(value); }

  OpBuilder &builder;
  LayerOp layer;
  Location loc;
  StateType state;
  int64_t heads, keyHeads, dv, dk;
};

func::FuncOp LayerExpander::start(StringRef role, ArrayRef<Type> inputs,
                                  ArrayRef<Type> results) {
  std::string name = (layer.getSymName() + "_" + role).str();
  auto function = func::FuncOp::create(
      builder, loc, name, builder.getFunctionType(inputs, results));
  function->setAttr(SSDialect::getLayerAttrName(),
                    FlatSymbolRefAttr::get(layer.getSymNameAttr()));
  function->setAttr(SSDialect::getRoleAttrName(), builder.getStringAttr(role));
  builder.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

func::FuncOp LayerExpander::decode() {
  const LayerTypeInfo &info = layer.getInfo();
  OpBuilder::InsertionGuard guard(builder);
  RankedTensorType keys = tensor({keyHeads, dk}), values = tensor({heads, dv}),
                   perHead = tensor({heads}),
                   gates = info.channelDecay ? tensor({heads, dk}) : perHead;
  SmallVector<Type> inputs = {state, keys, keys, values, gates};
  if (info.hasBeta)
    inputs.push_back(perHead);
  inputs.append({perHead, gates});
  func::FuncOp function = start("decode", inputs, {state, values});

  auto arguments = function.getArguments().begin();
  Value old = *arguments++, q = *arguments++, k = *arguments++,
        v = *arguments++, gate = *arguments++;
  Value beta = info.hasBeta ? Value(*arguments++) : Value();
  Value aLog = *arguments++, dtBias = *arguments++;

  q = NormalizeOp::create(builder, loc, q, layer.getNorm(),
                          layer.getQueryScaleAttr());
  k = NormalizeOp::create(builder, loc, k, layer.getNorm(), scale(1.0));
  Value decay =
      LogDecayOp::create(builder, loc, gate, aLog, dtBias, layer.getGate());
  Value weight;
  if (info.hasBeta)
    weight = WriteWeightOp::create(
        builder, loc, beta, scale(layer.getBetaScale().convertToDouble()));
  else
    weight = TimeStepOp::create(builder, loc, gate, dtBias);
  if (state.isDeferred())
    old = FoldOp::create(builder, loc, old);
  Value decayed = DecayOp::create(builder, loc, old, decay);
  Value appended = AppendOp::create(builder, loc, decayed, k, v, weight);
  Value y = ReadoutOp::create(builder, loc, values, appended, q);
  func::ReturnOp::create(builder, loc, {appended, y});
  return function;
}

func::FuncOp LayerExpander::compact() {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = start("compact", {state}, {state});
  FactorsType block = factors(state.getBlockRows());
  auto split = SplitOp::create(builder, loc, factors(state.getActive()), state,
                               function.getArgument(0));
  auto concat = ConcatOp::create(builder, loc, block, split.getActive(),
                                 split.getFrozen());
  Value rotated = layer.getCoreKind() == CoreKind::svd
                      ? rotateBySvd(concat.getBlock())
                      : rotateByQr(concat.getBlock());
  Value merged = MergeOp::create(builder, loc, rotated, split.getFrozen());
  Value kept = TruncateOp::create(builder, loc, merged, layer.getPolicy());
  func::ReturnOp::create(builder, loc, kept);
  return function;
}

/// The singular components of a block.
Value LayerExpander::rotateBySvd(Value block) {
  int64_t rows = state.getBlockRows();
  Type f64 = builder.getF64Type();
  auto square = RankedTensorType::get({heads, rows, rows}, f64);
  auto vector = RankedTensorType::get({heads, rows}, f64);
  auto bases = OrthogonalizeOp::create(builder, loc, block.getType(), square,
                                       square, block);
  auto core = CoreOp::create(builder, loc, bases.getLeft(), block,
                             bases.getRight());
  auto svd = CoreSvdOp::create(builder, loc, square, vector, square, core);
  return RotateOp::create(builder, loc, bases.getBasis(), svd.getX(),
                          svd.getSigma(), svd.getY());
}

/// Components of a block whose left sides are orthonormal.
Value LayerExpander::rotateByQr(Value block) {
  Value right =
      OrthogonalizeSideOp::create(builder, loc, block, Side::right);
  return OrthogonalizeSideOp::create(builder, loc, right, Side::left);
}

func::FuncOp LayerExpander::densify() {
  OpBuilder::InsertionGuard guard(builder);
  RankedTensorType dense = tensor({heads, dk, dv});
  func::FuncOp function = start("densify", {state}, {dense});
  Value h = DensifyOp::create(builder, loc, dense, function.getArgument(0));
  func::ReturnOp::create(builder, loc, h);
  return function;
}

/// The state that is given is overwritten: it only says where the new one goes.
func::FuncOp LayerExpander::init() {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function =
      start("init", {state, tensor({heads, dv, dk})}, {state});
  const PolicyAttr policy = layer.getPolicy();
  const double eps = policy.getKind() == PolicyKind::relative
                         ? policy.getValue()
                         : 0.0;
  Value s = InitOp::create(builder, loc, state, function.getArgument(1),
                           builder.getF64FloatAttr(eps));
  func::ReturnOp::create(builder, loc, s);
  return function;
}

/// Whether a dense state of the layer may come back to factors by the layer's init
/// kernel, which knows no weights below SS_INIT_LEAST_EPS.
static bool comesBackByInit(LayerOp layer) {
  const PolicyAttr policy = layer.getPolicy();
  return !layer.isSink() && layer.getStorage() != Storage::fp8 &&
         policy.getKind() == PolicyKind::relative &&
         policy.getValue() >= SS_INIT_LEAST_EPS &&
         std::min(layer.getDv(), layer.getDk()) <= SS_GRAM_MOST_ROWS;
}

struct ExpandLayers : sinkstate::ss::impl::SSExpandLayersBase<ExpandLayers> {
  using Base::Base;
  void runOnOperation() override;
  LogicalResult expand(ModelOp model);
};

void ExpandLayers::runOnOperation() {
  ModelOp first;
  for (ModelOp model : getOperation().getOps<ModelOp>()) {
    if (first) {
      model.emitOpError("@") << model.getSymName()
                             << " is the second model of the module, expected "
                                "one; compile models one by one";
      return signalPassFailure();
    }
    first = model;
  }
  if (first && failed(expand(first)))
    signalPassFailure();
}

LogicalResult ExpandLayers::expand(ModelOp model) {
  OpBuilder builder(&getContext());
  builder.setInsertionPointAfter(model);
  llvm::StringSet<> taken;
  size_t numFunctions = 0, numLayers = 0;
  for (Operation &op : *getOperation().getBody())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op))
      taken.insert(symbol.getName());
  for (LayerOp layer : model.getLayers()) {
    LayerExpander expander(builder, layer);
    SmallVector<func::FuncOp> functions = {expander.decode()};
    if (layer.isFactored()) {
      functions.push_back(expander.compact());
      functions.push_back(expander.densify());
      if (init || (initWhereDense && comesBackByInit(layer)))
        functions.push_back(expander.init());
    }
    numFunctions += functions.size();
    ++numLayers;
    for (func::FuncOp function : functions)
      if (!taken.insert(function.getSymName()).second)
        return layer.emitOpError("@")
               << layer.getSymName() << " expands to function @"
               << function.getSymName()
               << ", but the module already has a symbol of that name; rename "
                  "it or expand only once";
  }
  if (report)
    model.emitRemark() << "made " << numFunctions << " functions for "
                       << numLayers << " layers";
  return success();
}

} // namespace
