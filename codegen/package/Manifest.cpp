//===- Manifest.cpp - manifest.json of a kernel package -------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "codegen/package/Manifest.h"

#include "codegen/cuda/CudaPrinter.h"
#include "dialect/ss/SS.h"
#include "dialect/ssk/SSKDialect.h"
#include "sinkstate/routines.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using llvm::json::Array;
using llvm::json::Object;

namespace sinkstate {

std::string sha256(StringRef bytes) {
  llvm::SHA256 hash;
  hash.update(bytes);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

std::string fingerprintGraph(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.useLocalScope().printGenericOpForm();
  for (auto model : module.getOps<ss::ModelOp>())
    model->print(stream, flags);
  return sha256(text);
}

static StringRef nameOfType(ssk::GlobalType type) {
  Type element = type.getElementType();
  if (element.isF32())
    return "f32*";
  if (element.isF64())
    return "f64*";
  if (element.isF16())
    return "f16*";
  if (element.isBF16())
    return "bf16*";
  if (isa<Float8E4M3FNType>(element))
    return "fp8*";
  return element.isInteger(64) ? "i64*" : "i32*";
}

static StringRef nameOfType(Type type) {
  if (auto global = dyn_cast<ssk::GlobalType>(type))
    return nameOfType(global);
  if (type.isF32())
    return "f32";
  return type.isInteger(64) ? "i64" : "i32";
}

static Object describeKernel(ssk::KernelOp kernel) {
  Array arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
    arguments.push_back(Object{{"name", kernel.getArgumentName(i)},
                               {"type", nameOfType(type)}});
  const cuda::CudaKernelInfo info = cuda::getCudaKernelInfo(kernel);
  return Object{{"name", kernel.getName()},
                {"loops", info.loops},
                {"parts", info.parts},
                {"warps", info.warps},
                {"role", kernel.getRole().value_or("")},
                {"programs_per_block",
                 static_cast<int64_t>(kernel.getProgramsPerBlock())},
                {"args", std::move(arguments)}};
}

static FailureOr<Object> describeLayer(ss::LayerOp layer,
                                       ss::ScheduleOp schedule) {
  Object kernels;
  for (StringRef role : {"decode", "compact", "densify"}) {
    if (role != "decode" && !layer.isFactored())
      continue;
    FlatSymbolRefAttr kernel = layer.getKernel(role);
    if (!kernel)
      return layer.emitOpError("names no ")
             << role << " kernel; run ss-pipeline first";
    kernels[role] = kernel.getValue();
  }
  if (FlatSymbolRefAttr init = layer.getKernel("init"))
    kernels["init"] = init.getValue();
  ss::PolicyAttr policy = layer.getPolicy();
  const ss::LayerTypeInfo &info = layer.getInfo();
  const bool isBefore =
      layer.isFactored() &&
      (layer.getDraft() > 0 ||
       (schedule && schedule.isBefore(layer.getSymName())));
  return Object{
      {"name", layer.getSymName()},
      {"index", static_cast<int64_t>(layer.getIndex())},
      {"type", ss::stringifyLayerType(layer.getType())},
      {"heads", static_cast<int64_t>(layer.getHeads())},
      {"key_heads", static_cast<int64_t>(layer.getKeyHeads())},
      {"dv", static_cast<int64_t>(layer.getDv())},
      {"dk", static_cast<int64_t>(layer.getDk())},
      {"form", ss::stringifyForm(layer.getForm())},
      {"active", static_cast<int64_t>(layer.getActive())},
      {"buffer", static_cast<int64_t>(layer.getBuffer())},
      {"draft", static_cast<int64_t>(layer.getDraft())},
      {"core", ss::stringifyCoreKind(layer.getCoreKind())},
      {"storage", ss::stringifyStorage(layer.getStorage())},
      {"rounding", ss::stringifyRounding(layer.getRoundingKind())},
      {"channel_decay", info.channelDecay},
      {"has_beta", info.hasBeta},
      {"policy", Object{{"kind", ss::stringifyPolicyKind(policy.getKind())},
                        {"value", policy.getValue()}}},
      {"phase", schedule ? schedule.getPhase(layer.getSymName()) : 0},
      {"compacts", isBefore ? "before" : "after"},
      {"rank", layer.getRankBound()},
      {"kernels", std::move(kernels)}};
}

FailureOr<Object> describeModule(ModuleOp module, StringRef fingerprint) {
  auto models = module.getOps<ss::ModelOp>();
  if (std::distance(models.begin(), models.end()) != 1)
    return module.emitError("has ")
           << std::distance(models.begin(), models.end())
           << " models, expected one ss.model for a package";
  ss::ModelOp model = *models.begin();
  ss::ScheduleOp schedule;
  for (auto op : model.getOps<ss::ScheduleOp>())
    schedule = op;

  Array layers, kernels;
  for (auto layer : model.getOps<ss::LayerOp>()) {
    FailureOr<Object> described = describeLayer(layer, schedule);
    if (failed(described))
      return failure();
    layers.push_back(std::move(*described));
  }
  for (auto kernel : module.getOps<ssk::KernelOp>())
    kernels.push_back(describeKernel(kernel));
  int64_t period = schedule ? static_cast<int64_t>(schedule.getPeriod()) : 1;
  return Object{{"format", "sinkstate-package"},
                {"version", 1},
                {"abi", static_cast<int64_t>(SS_ABI_VERSION)},
                {"compiler", SS_VERSION},
                {"model", model.getSymName()},
                {"fingerprint", fingerprint.str()},
                {"schedule", Object{{"period", period}}},
                {"layers", std::move(layers)},
                {"kernels", std::move(kernels)},
                {"cpu", Array()},
                {"cuda", Array()},
                {"cuda_headers", Array()}};
}

std::string printManifest(Object manifest) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Objects print with sorted keys.
  stream << llvm::formatv("{0:2}", llvm::json::Value(std::move(manifest)))
         << "\n";
  return text;
}

} // namespace sinkstate
