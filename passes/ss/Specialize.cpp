//===- Specialize.cpp - ss-specialize -------------------------------------===//

#include "passes/ss/Passes.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace sinkstate::ss {
#define GEN_PASS_DEF_SSSPECIALIZE
#include "passes/ss/Passes.h.inc"
} // namespace sinkstate::ss

using namespace sinkstate::ss;

/// All that a function says, without its name and its layer, and with one value
/// for all policies of a kind whose value is an argument of the kernel.
static std::string getSignature(func::FuncOp function) {
  OwningOpRef<func::FuncOp> copy(function.clone());
  copy->setSymName("signature");
  copy->getOperation()->removeAttr(SSDialect::getLayerAttrName());
  copy->walk([](Operation *op) {
    for (NamedAttribute named : op->getAttrs()) {
      auto policy = dyn_cast<PolicyAttr>(named.getValue());
      if (!policy || policy.isFixed())
        continue;
      bool relative = policy.getKind() == PolicyKind::relative;
      op->setAttr(named.getName(),
                  PolicyAttr::get(op->getContext(), policy.getKind(),
                                  relative ? 0.0 : 1.0));
    }
  });
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream, OpPrintingFlags()
                          .enableDebugInfo(false)
                          .useLocalScope()
                          .printGenericOpForm());
  return text;
}

/// The readable part of a function's name.
static std::string getNameStem(LayerOp layer, StringRef role) {
  std::string stem = llvm::formatv(
      "{0}_{1}_h{2}_kh{3}_{4}x{5}", stringifyEnum(layer.getType()), role,
      layer.getHeads(), layer.getKeyHeads(), layer.getDv(), layer.getDk());
  if (layer.getForm() == Form::deferred)
    stem += llvm::formatv("_deferred_b{0}", layer.getBuffer());
  else if (!layer.isFactored())
    stem += "_dense";
  else
    stem += llvm::formatv("_a{0}_b{1}", layer.getActive(), layer.getBuffer());
  if (layer.isSink())
    stem += "_sink";
  if (layer.isFactored() && layer.getDraft() > 0)
    stem += llvm::formatv("_d{0}", layer.getDraft());
  if (role == "compact")
    stem += "_" + stringifyEnum(layer.getCoreKind()).str();
  stem += "_" + stringifyEnum(layer.getStorage()).str();
  return layer.getRoundingKind() == Rounding::stochastic ? stem + "_sr" : stem;
}

namespace {

struct Specialize : sinkstate::ss::impl::SSSpecializeBase<Specialize> {
  using Base::Base;
  void runOnOperation() override;
  LogicalResult shareFunctions(ModelOp model);
  StringAttr share(func::FuncOp function, LayerOp layer, StringRef role);

  /// The shared function of a signature.
  llvm::StringMap<func::FuncOp> bySignature;
  /// Every symbol of the module.
  llvm::StringSet<> taken;
  size_t numBefore = 0;
};

void Specialize::runOnOperation() {
  bySignature.clear();
  taken.clear();
  numBefore = 0;
  for (Operation &op : *getOperation().getBody())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op))
      taken.insert(symbol.getName());
  for (ModelOp model : getOperation().getOps<ModelOp>())
    if (failed(shareFunctions(model)))
      return signalPassFailure();
}

/// Returns the name of the function that does what `function` does, which is
/// either renamed or erased.
StringAttr Specialize::share(func::FuncOp function, LayerOp layer,
                             StringRef role) {
  std::string signature = getSignature(function);
  auto [entry, added] = bySignature.try_emplace(signature, function);
  ++numBefore;
  if (!added) {
    taken.erase(function.getSymName());
    function.erase();
    return entry->second.getSymNameAttr();
  }
  taken.erase(function.getSymName());
  uint64_t hash = llvm::xxh3_64bits(signature);
  std::string stem = getNameStem(layer, role), name;
  // Longer digests in the improbable case that short ones meet.
  for (unsigned digits = 8; digits <= 16; ++digits) {
    std::string hex = llvm::formatv("{0:x-16}", hash);
    name = stem + "_" + hex.substr(0, digits);
    if (taken.insert(name).second)
      break;
  }
  function.setSymName(name);
  function->removeAttr(SSDialect::getLayerAttrName());
  return function.getSymNameAttr();
}

LogicalResult Specialize::shareFunctions(ModelOp model) {
  // The functions of each layer, in the order of the module.
  llvm::StringMap<SmallVector<func::FuncOp>> byLayer;
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    auto layer = function->getAttrOfType<FlatSymbolRefAttr>(
        SSDialect::getLayerAttrName());
    if (!layer)
      continue;
    if (!model.lookupLayer(layer.getValue()))
      return function.emitOpError("@")
             << function.getSymName() << " is made for " << layer
             << ", which model @" << model.getSymName() << " does not have";
    if (!function->hasAttr(SSDialect::getRoleAttrName()))
      return function.emitOpError("@")
             << function.getSymName() << " is made for " << layer
             << " but has no 'ss.role'";
    byLayer[layer.getValue()].push_back(function);
  }
  Builder builder(&getContext());
  for (LayerOp layer : model.getLayers()) {
    NamedAttrList kernels;
    for (func::FuncOp function : byLayer[layer.getSymName()]) {
      auto role =
          function->getAttrOfType<StringAttr>(SSDialect::getRoleAttrName());
      if (kernels.get(role.getValue()))
        return function.emitOpError("@")
               << function.getSymName() << " is the second function of role "
               << role << " of layer @" << layer.getSymName();
      kernels.set(role.getValue(), FlatSymbolRefAttr::get(share(
                                       function, layer, role.getValue())));
    }
    if (kernels.empty() && !layer.getKernels())
      return layer.emitOpError("@")
             << layer.getSymName()
             << " has no functions; run ss-expand-layers first";
    if (!kernels.empty())
      layer.setKernelsAttr(builder.getDictionaryAttr(kernels));
  }
  if (report)
    model.emitRemark() << numBefore << " functions of layers became "
                       << bySignature.size();
  return success();
}

} // namespace
