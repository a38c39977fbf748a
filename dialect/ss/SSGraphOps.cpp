//===- SSGraphOps.cpp - The model state graph -----------------------------===//

#include "dialect/ss/SS.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace sinkstate::ss;

//===----------------------------------------------------------------------===//
// Keywords in the text form
//===----------------------------------------------------------------------===//

template <typename EnumAttr, typename Enum>
static ParseResult parseEnumWord(OpAsmParser &parser, StringRef what,
                                 EnumAttr &attr) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Enum> value = symbolizeEnum<Enum>(word);
  if (!value)
    return parser.emitError(loc, "unknown ")
           << what << " '" << word << "', expected " << listKeywords<Enum>();
  attr = EnumAttr::get(parser.getContext(), *value);
  return success();
}

static ParseResult parseLayerType(OpAsmParser &parser, LayerTypeAttr &attr) {
  return parseEnumWord<LayerTypeAttr, LayerType>(parser, "layer type", attr);
}
static void printLayerType(OpAsmPrinter &printer, LayerOp, LayerTypeAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

static ParseResult parseStorage(OpAsmParser &parser, StorageAttr &attr) {
  return parseEnumWord<StorageAttr, Storage>(parser, "storage", attr);
}
static void printStorage(OpAsmPrinter &printer, LayerOp, StorageAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

static ParseResult parseRounding(OpAsmParser &parser, RoundingAttr &attr) {
  return parseEnumWord<RoundingAttr, Rounding>(parser, "rounding", attr);
}
static void printRounding(OpAsmPrinter &printer, LayerOp, RoundingAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

static ParseResult parseCoreKind(OpAsmParser &parser, CoreKindAttr &attr) {
  return parseEnumWord<CoreKindAttr, CoreKind>(parser, "core", attr);
}
static void printCoreKind(OpAsmPrinter &printer, LayerOp, CoreKindAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

static ParseResult parseSide(OpAsmParser &parser, SideAttr &attr) {
  return parseEnumWord<SideAttr, Side>(parser, "side", attr);
}
static void printSide(OpAsmPrinter &printer, OrthogonalizeSideOp,
                      SideAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

static ParseResult parseForm(OpAsmParser &parser, FormAttr &attr) {
  return parseEnumWord<FormAttr, Form>(parser, "form", attr);
}
static void printForm(OpAsmPrinter &printer, LayerOp, FormAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

/// An attribute without its prefix, `<softplus>`. With the prefix, a `:` behind
/// it would be read as the attribute's type.
template <typename Attr>
static ParseResult parseBare(OpAsmParser &parser, Attr &attr) {
  return parser.parseCustomAttributeWithFallback(attr);
}
template <typename Attr>
static void printBare(OpAsmPrinter &printer, Operation *, Attr attr) {
  printer.printStrippedAttrOrType(attr);
}

/// `[@layer0 = 0, @layer1 = 4]`
static ParseResult parsePhases(OpAsmParser &parser, ArrayAttr &layers,
                               DenseI64ArrayAttr &phases) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> values;
  auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseSymbolName(name) || parser.parseEqual() ||
        parser.parseInteger(values.emplace_back()))
      return failure();
    names.push_back(FlatSymbolRefAttr::get(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
    return failure();
  layers = parser.getBuilder().getArrayAttr(names);
  phases = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printPhases(OpAsmPrinter &printer, ScheduleOp, ArrayAttr layers,
                        DenseI64ArrayAttr phases) {
  printer << '[';
  llvm::interleaveComma(
      llvm::zip(layers, phases.asArrayRef()), printer, [&](auto pair) {
        printer << std::get<0>(pair) << " = " << std::get<1>(pair);
      });
  printer << ']';
}

#define GET_OP_CLASSES
#include "dialect/ss/SSOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ss.model
//===----------------------------------------------------------------------===//

void ModelOp::build(OpBuilder &builder, OperationState &state, StringRef name) {
  state.addAttribute(mlir::SymbolTable::getSymbolAttrName(),
                     builder.getStringAttr(name));
  state.addRegion()->emplaceBlock();
}

ScheduleOp ModelOp::getSchedule() {
  auto schedules = getBody().front().getOps<ScheduleOp>();
  return schedules.empty() ? ScheduleOp() : *schedules.begin();
}

LayerOp ModelOp::lookupLayer(StringRef name) {
  for (LayerOp layer : getLayers())
    if (layer.getSymName() == name)
      return layer;
  return {};
}

LogicalResult ModelOp::verifyRegions() {
  llvm::DenseMap<int64_t, LayerOp> byIndex;
  ScheduleOp schedule;
  for (Operation &op : getBody().front()) {
    if (auto layer = dyn_cast<LayerOp>(op)) {
      auto [other, added] = byIndex.try_emplace(layer.getIndex(), layer);
      if (!added)
        return layer.emitOpError("has index ")
               << layer.getIndex() << " of layer @"
               << other->second.getSymName() << ", expected one of its own";
      continue;
    }
    if (auto found = dyn_cast<ScheduleOp>(op)) {
      if (schedule)
        return found.emitOpError("is the second schedule of model @")
               << getSymName() << ", expected one";
      schedule = found;
      continue;
    }
    return op.emitOpError("stands in a model, expected only ss.layer and "
                          "ss.schedule there");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ss.layer
//===----------------------------------------------------------------------===//

int64_t LayerOp::getRankBound() {
  if (!isFactored())
    return 0;
  if (getPolicy().isFixed())
    return 2 * getPolicy().getCount() + getDraft() + (isSink() ? 1 : 0);
  return std::min(getDv(), getDk()) + getActive() + getBuffer() + getDraft();
}

StateType LayerOp::getStateType() {
  bool factored = isFactored();
  return StateType::get(getContext(), getType(), getHeads(), getKeyHeads(),
                        getDv(), getDk(), getForm(), factored ? getActive() : 0,
                        getForm() == Form::dense ? 0 : getBuffer(),
                        getRankBound(),
                        getStorage(), factored ? getDraft() : 0,
                        getRoundingKind());
}

FlatSymbolRefAttr LayerOp::getKernel(StringRef role) {
  if (std::optional<DictionaryAttr> kernels = getKernels())
    return kernels->getAs<FlatSymbolRefAttr>(role);
  return {};
}

/// The gate's shape is the layer type's, and the layer type has what is scaled.
static LogicalResult verifyRecurrence(LayerOp layer) {
  const LayerTypeInfo &info = layer.getInfo();
  StringRef type = stringifyEnum(layer.getType());
  StringRef gate = stringifyEnum(layer.getGate().getKind());
  if (layer.getGate().isChannel() && !info.channelDecay)
    return layer.emitOpError("has gate '")
           << gate << "', but layer type '" << type
           << "' decays by head; expected '" << stringifyEnum(info.defaultGate)
           << "'";
  if (!layer.getGate().isChannel() && info.channelDecay)
    return layer.emitOpError("has gate '")
           << gate << "', but layer type '" << type
           << "' decays by key channel; expected 'softplus_channel' or "
              "'bounded_channel'";
  double betaScale = layer.getBetaScale().convertToDouble();
  if (!(betaScale > 0 && betaScale <= 2))
    return layer.emitOpError("has beta_scale ")
           << formatNumber(betaScale) << ", expected 0 < beta_scale <= 2";
  if (betaScale != 1 && !info.hasBeta)
    return layer.emitOpError("has beta_scale ")
           << formatNumber(betaScale) << ", but layer type '" << type
           << "' has no beta";
  if (!layer.getQueryScale().isFiniteNonZero())
    return layer.emitOpError("has query_scale ")
           << formatNumber(layer.getQueryScale().convertToDouble())
           << ", expected a finite number other than 0";
  return success();
}

/// The policy fits the sizes and the form.
static LogicalResult verifyPolicy(LayerOp layer) {
  PolicyAttr policy = layer.getPolicy();
  if (layer.isSink() && !policy.isFixed())
    return layer.emitOpError("has form 'sink' with policy '")
           << stringifyEnum(policy.getKind()) << "', expected 'fixed'";
  if (policy.isFixed()) {
    int64_t rank = policy.getCount();
    int64_t full = std::min(layer.getDv(), layer.getDk());
    if (rank > full)
      return layer.emitOpError("has a fixed rank of ")
             << rank << ", expected at most min(dv, dk), " << full;
    if (layer.getActive() != rank || layer.getBuffer() != rank)
      return layer.emitOpError("has a fixed rank of ")
             << rank << " with active " << layer.getActive() << " and buffer "
             << layer.getBuffer() << ", expected both to be the rank";
  }
  if (policy.getKind() == PolicyKind::budget) {
    int64_t least = layer.getStateType().getComponentBytes();
    if (policy.getCount() < least)
      return layer.emitOpError("has a budget of ")
             << policy.getCount() << " bytes per state, expected at least "
             << least << ", one component";
  }
  return success();
}

static LogicalResult verifyKernels(LayerOp layer) {
  DictionaryAttr kernels = layer.getKernelsAttr();
  if (!kernels)
    return success();
  for (NamedAttribute kernel : kernels) {
    if (!SSDialect::isRole(kernel.getName()))
      return layer.emitOpError("names a kernel for role '")
             << kernel.getName().strref()
             << "', expected 'decode', 'compact', 'densify' or 'init'";
    if (!isa<FlatSymbolRefAttr>(kernel.getValue()))
      return layer.emitOpError("has kernel ")
             << kernel.getValue() << " for role '" << kernel.getName().strref()
             << "', expected a symbol";
  }
  return success();
}

LogicalResult LayerOp::verify() {
  auto emit = [&] {
    InFlightDiagnostic diagnostic = emitOpError("@");
    diagnostic << getSymName() << ": ";
    return diagnostic;
  };
  // Packages keep it in 32 bits.
  if (getIndex() < 0 || getIndex() > INT32_MAX)
    return emitOpError("has index ")
           << getIndex() << ", expected 0 to " << INT32_MAX;
  if (failed(verifyStateSizes(
          emit, {getHeads(), getKeyHeads(), getDv(), getDk(), getDraft()})))
    return failure();
  // A dense layer keeps the figures of its policy, unused, so that its form is
  // the only thing that changes between the two.
  if (failed(verifyBlockSizes(emit, getActive(), getBuffer(), getDraft())))
    return failure();
  if (failed(verifyRecurrence(*this)) || failed(verifyPolicy(*this)))
    return failure();
  if (!isFactored() && getStorage() == Storage::fp8)
    return emit() << kNoDenseFp8;
  if (getRoundingKind() == Rounding::stochastic && getStorage() == Storage::f32)
    return emit() << kNoRoundingOfF32;
  if (getRoundingKind() == Rounding::stochastic && getForm() == Form::deferred)
    return emit() << kNoRandomDeferred;
  return verifyKernels(*this);
}

//===----------------------------------------------------------------------===//
// ss.schedule
//===----------------------------------------------------------------------===//

int64_t ScheduleOp::getPhase(StringRef layer) {
  for (auto [name, phase] : llvm::zip(getLayers(), getPhases()))
    if (cast<FlatSymbolRefAttr>(name).getValue() == layer)
      return phase;
  return 0;
}

bool ScheduleOp::isBefore(StringRef layer) {
  return getBefore() &&
         llvm::any_of(*getBefore(), [&](Attribute name) {
           return cast<FlatSymbolRefAttr>(name).getValue() == layer;
         });
}

/// Layers of the schedule, each once.
static LogicalResult verifyBefore(ScheduleOp schedule) {
  llvm::DenseSet<StringRef> seen;
  for (Attribute attr : schedule.getBeforeAttr()) {
    StringRef name = cast<FlatSymbolRefAttr>(attr).getValue();
    if (!llvm::is_contained(schedule.getLayers(), attr))
      return schedule.emitOpError("has @")
             << name << " in 'before', expected a layer with a phase";
    if (!seen.insert(name).second)
      return schedule.emitOpError("has @") << name << " in 'before' twice, expected every layer once";
  }
  return success();
}

LogicalResult ScheduleOp::verify() {
  int64_t period = getPeriod();
  if (period < 1)
    return emitOpError("has period ") << period << ", expected at least 1";
  if (getLayers().size() != getPhases().size())
    return emitOpError("has ") << getPhases().size() << " phases for "
                               << getLayers().size() << " layers";
  auto model = cast<ModelOp>((*this)->getParentOp());
  llvm::DenseSet<StringRef> seen;
  for (auto [attr, phase] : llvm::zip(getLayers(), getPhases())) {
    StringRef name = cast<FlatSymbolRefAttr>(attr).getValue();
    LayerOp layer = model.lookupLayer(name);
    if (!layer)
      return emitOpError("names @")
             << name << ", expected a layer of model @" << model.getSymName();
    if (!layer.isFactored())
      return emitOpError("names @")
             << name << ", a " << stringifyEnum(layer.getForm())
             << " layer, which is never compacted";
    if (!seen.insert(name).second)
      return emitOpError("names @") << name << " twice";
    int64_t buffer = layer.getBuffer();
    if (phase < 0 || phase >= buffer)
      return emitOpError("has phase ")
             << phase << " for @" << name << ", expected 0 to " << buffer - 1;
    if (buffer > 0 && period % buffer != 0)
      return emitOpError("has period ")
             << period << ", expected a multiple of the buffer of @" << name
             << ", " << buffer;
  }
  for (LayerOp layer : model.getLayers())
    if (layer.isFactored() && !seen.contains(layer.getSymName()))
      return emitOpError("has no phase for @")
             << layer.getSymName() << ", expected one for every factored layer";
  return getBefore() ? verifyBefore(*this) : success();
}

//===----------------------------------------------------------------------===//
// ss.fused, ss.yield
//===----------------------------------------------------------------------===//

LogicalResult FusedOp::verifyRegions() {
  if (!SSDialect::isRole(getRole()))
    return emitOpError("has role '")
           << getRole() << "', expected 'decode', 'compact', 'densify' or 'init'";
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("has body arguments of types (")
           << block.getArgumentTypes() << "), expected those of the operands, ("
           << getInputs().getTypes() << ")";
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError("has a body that does not end with ss.yield");
  if (yield.getValues().getTypes() != getOutputs().getTypes())
    return yield.emitOpError("gives types (")
           << yield.getValues().getTypes()
           << "), expected those of the results, (" << getOutputs().getTypes()
           << ")";
  return success();
}

void YieldOp::build(OpBuilder &, OperationState &) {}
