//===- Manifest.cpp - manifest.json of a kernel package -------------------===//

#include "package/Manifest.h"

#include "package/CpuIsa.h"
#include "package/ManifestCode.h"
#include "package/ManifestFields.h"

#include <algorithm>
#include <map>
#include <set>

namespace sinkstate::runtime {
namespace {

// Far above any model known, far below any overflow of 64-bit offsets.
constexpr int64_t kMaxDimension = 4096;
constexpr int64_t kMaxHeads = 65536;
constexpr int64_t kMaxRows = 1024;

using KernelsByName = std::map<std::string, KernelIndex>;

void checkFormat(const ManifestObject &top) {
  if (std::string format = top.string("format"); format != "sinkstate-package")
    malformed("field 'format' is '", format,
              "', expected 'sinkstate-package'");
  if (int32_t version = top.integer("version", 0, INT32_MAX); version != 1)
    fail(SS_VERSION_MISMATCH, "manifest.json: package version ", version,
         ", expected version 1: build the package with the compiler of this "
         "runtime (",
         ss_version(), ")");
  if (int32_t abi = top.integer("abi", 0, INT32_MAX);
      abi != int32_t(SS_ABI_VERSION))
    fail(SS_VERSION_MISMATCH, "manifest.json: kernel ABI ", abi, ", expected ",
         SS_ABI_VERSION,
         ": build the package with the compiler of this runtime (",
         ss_version(), ")");
}

/// `f32*`, `f16*`, `bf16*` and `fp8*` are the types of an argument that holds stored
/// elements; all of a kernel's are the same.
void checkType(const ManifestObject &argument, const ArgumentInfo &info,
               KernelManifest &kernel) {
  const std::string type = argument.string("type");
  if (info.type != kStoredType) {
    if (type != info.type)
      malformed(argument.place(), " '", info.name, "' has type '", type,
                "', expected '", info.type, "'");
    return;
  }
  std::optional<Storage> storage;
  if (!type.empty() && type.back() == '*')
    storage = storageByName(std::string_view(type).substr(0, type.size() - 1));
  if (!storage)
    malformed(argument.place(), " '", info.name, "' has type '", type,
              "', expected 'f32*', 'f16*', 'bf16*' or 'fp8*'");
  kernel.storage = *storage;
}

KernelManifest parseKernel(const Json &json, size_t position) {
  ManifestObject object(json, text("kernel ", position));
  KernelManifest kernel;
  kernel.name = object.nonEmptyString("name");
  ManifestObject named(json, "kernel '" + kernel.name + "'");
  std::string role = named.string("role");
  if (role == "decode")
    kernel.role = KernelRole::Decode;
  else if (role == "compact")
    kernel.role = KernelRole::Compact;
  else if (role == "densify")
    kernel.role = KernelRole::Densify;
  else if (role == "init")
    kernel.role = KernelRole::Init;
  else
    malformed(named.place(), ": role '", role,
              "', expected 'decode', 'compact', 'densify' or 'init'");
  if (named.has("programs_per_block"))
    kernel.programsPerBlock = named.integer("programs_per_block", 1, 32);
  if (named.has("parts"))
    kernel.parts = named.integer("parts", 1, 8);
  if (named.has("warps"))
    kernel.warps = named.integer("warps", 1, 16);
  if (kernel.warps > 1 && (kernel.programsPerBlock != 1 || kernel.parts > 1))
    malformed(named.place(), ": ", kernel.warps, " warps a program, ",
              kernel.programsPerBlock, " programs a block and ", kernel.parts,
              " parts, expected 1 program a block and 1 part");
  if (kernel.parts > 1 && kernel.programsPerBlock != 1)
    malformed(named.place(), ": ", kernel.parts, " parts and ",
              kernel.programsPerBlock,
              " programs a block, expected 1 program a block with parts");
  if (named.has("loops"))
    kernel.loops = named.boolean("loops");
  if (kernel.parts > 1 && kernel.loops)
    malformed(named.place(), ": ", kernel.parts,
              " parts and a loop over programs, expected one of them");
  size_t argumentPosition = 0;
  for (const Json &entry : named.array("args")) {
    ManifestObject argument(
        entry, text(named.place(), ", argument ", argumentPosition++));
    std::string name = argument.string("name");
    std::optional<Argument> id = argumentByName(name);
    if (!id)
      malformed(argument.place(), " is named '", name,
                "', expected a name that this runtime binds (such as 'rows')");
    const ArgumentInfo &info = argumentInfo(*id);
    checkType(argument, info, kernel);
    // Kernels take their arguments as not aliasing.
    if (std::find(kernel.arguments.begin(), kernel.arguments.end(), *id) !=
        kernel.arguments.end())
      malformed(named.place(), " binds '", name, "' twice");
    kernel.arguments.push_back(*id);
  }
  return kernel;
}

Policy parsePolicy(const ManifestObject &layer) {
  ManifestObject object = layer.object("policy");
  Policy policy;
  std::string kind = object.string("kind");
  policy.value = object.number("value");
  double low = 0, high = 0;
  if (kind == "relative")
    policy.kind = PolicyKind::Relative, low = 0, high = 1;
  else if (kind == "fixed")
    policy.kind = PolicyKind::Fixed, low = 1, high = kMaxRows;
  else if (kind == "energy")
    policy.kind = PolicyKind::Energy, low = 0, high = 1;
  else if (kind == "budget")
    policy.kind = PolicyKind::Budget, low = 1, high = 1e15;
  else
    malformed(object.place(), ": kind '", kind,
              "', expected 'relative', 'fixed', 'energy' or 'budget'");
  if (policy.value < low || policy.value > high)
    malformed(object.place(), ": value ", policy.value, " of kind '", kind,
              "', expected ", low, " to ", high);
  return policy;
}

/// Every argument of a layer's kernel must mean something in that layer.
void checkBindings(const LayerManifest &layer, const KernelManifest &kernel) {
  uint8_t place = InDensify;
  if (kernel.role == KernelRole::Decode)
    place = layer.deferred    ? InDeferredDecode
            : layer.denseForm ? InDenseDecode
                              : InFactoredDecode;
  else if (kernel.role == KernelRole::Compact)
    place = InCompact;
  else if (kernel.role == KernelRole::Init)
    place = InInit;
  for (Argument argument : kernel.arguments) {
    const ArgumentInfo &info = argumentInfo(argument);
    if (!(info.places & place))
      malformed("kernel '", kernel.name, "' binds '", info.name,
                "', which the ", kernelRoleName(kernel.role), " kernel of the ",
                layer.deferred    ? "deferred"
                : layer.denseForm ? "dense"
                                  : "factored",
                " layer '", layer.name,
                "' does not have");
    if (info.type == kStoredType && kernel.storage != layer.storage)
      malformed("kernel '", kernel.name, "' takes '", info.name, "' in ",
                storageName(kernel.storage), ", expected ",
                storageName(layer.storage), ", the storage of layer '",
                layer.name, "'");
    bool beta = argument == Argument::Beta || argument == Argument::BetaStride;
    if (beta && !layer.hasBeta)
      malformed("kernel '", kernel.name, "' binds '", info.name,
                "', but layer '", layer.name, "' has has_beta = false");
  }
}

KernelIndex findKernel(const ManifestObject &names, KernelRole role,
                       const LayerManifest &layer, const Manifest &manifest,
                       const KernelsByName &byName) {
  const char *roleName = kernelRoleName(role);
  std::string name = names.nonEmptyString(roleName);
  auto found = byName.find(name);
  if (found == byName.end())
    malformed(names.place(), ": the ", roleName, " kernel '", name,
              "' is not in 'kernels'");
  const KernelManifest &kernel = manifest.kernels[size_t(found->second)];
  if (kernel.role != role)
    malformed(names.place(), ": kernel '", name, "' has role '",
              kernelRoleName(kernel.role), "', expected '", roleName, "'");
  checkBindings(layer, kernel);
  return found->second;
}

void parseSizes(const ManifestObject &object, LayerManifest &layer) {
  layer.index = object.integer("index", 0, INT32_MAX);
  layer.heads = object.integer("heads", 1, kMaxHeads);
  layer.keyHeads = object.integer("key_heads", 1, kMaxHeads);
  if (layer.heads % layer.keyHeads != 0)
    malformed(object.place(), ": ", layer.heads, " heads over ",
              layer.keyHeads, " key heads, expected a multiple");
  layer.dv = object.integer("dv", 1, kMaxDimension);
  layer.dk = object.integer("dk", 1, kMaxDimension);
  layer.channelDecay = object.boolean("channel_decay");
  layer.hasBeta = object.boolean("has_beta");
  std::string name = object.string("storage");
  std::optional<Storage> storage = storageByName(name);
  if (!storage)
    fail(SS_VERSION_MISMATCH, "manifest.json: ", object.place(),
         " stores its rows as '", name,
         "', expected 'f32', 'f16', 'bf16' or 'fp8', the storages of this "
         "runtime: "
         "compile the graph with one of them");
  layer.storage = *storage;
  const std::string rounding =
      object.has("rounding") ? object.string("rounding") : "nearest";
  if (rounding != "nearest" && rounding != "stochastic")
    malformed(object.place(), ": rounding '", rounding,
              "', expected 'nearest' or 'stochastic'");
  layer.stochastic = rounding == "stochastic";
}

/// Whether the layer compacts before its tokens. Packages of older compilers do
/// not say so: there it is what draft tokens need.
bool parseCompacts(const ManifestObject &object, int32_t draft) {
  if (!object.has("compacts"))
    return draft > 0;
  const std::string when = object.string("compacts");
  if (when != "before" && when != "after")
    malformed(object.place(), ": compacts '", when,
              "', expected 'before' or 'after'");
  if (draft > 0 && when == "after")
    malformed(object.place(), ": compacts 'after' with ", draft,
              " draft tokens, expected 'before'");
  return when == "before";
}

void parseFactoredForm(const ManifestObject &object, LayerManifest &layer) {
  layer.active = object.integer("active", 1, kMaxRows);
  layer.buffer = object.integer("buffer", 1, kMaxRows);
  layer.draft = object.integer("draft", 0, kMaxRows);
  layer.compactsBefore = parseCompacts(object, layer.draft);
  layer.policy = parsePolicy(object);
  layer.phase = object.integer("phase", 0, layer.buffer - 1);
  layer.rank = object.integer("rank", 1, 4 * kMaxDimension);
  if (layer.rank < layer.neededRank())
    malformed(object.place(), ": rank ", layer.rank,
              " rows per state, expected at least ", layer.neededRank());
  const int64_t width = int64_t(layer.dv) + layer.dk;
  const double least = double(layer.buffer) * double(width * 4) +
                       double(width * elementBytes(layer.storage)) + 4;
  if (layer.policy.kind == PolicyKind::Budget && layer.policy.value < least)
    malformed(object.place(), ": a budget of ", layer.policy.value,
              " bytes per state, expected at least ", least,
              " for the buffer and one component");
}

LayerManifest parseLayer(const Json &json, size_t position,
                         const Manifest &manifest,
                         const KernelsByName &byName) {
  LayerManifest layer;
  layer.name =
      ManifestObject(json, text("layer ", position)).nonEmptyString("name");
  ManifestObject object(json, "layer '" + layer.name + "'");
  layer.type = object.nonEmptyString("type");
  parseSizes(object, layer);
  std::string form = object.string("form");
  if (form != "factored" && form != "dense" && form != "deferred" &&
      form != "sink")
    malformed(object.place(), ": form '", form,
              "', expected 'factored', 'dense', 'deferred' or 'sink'");
  layer.denseForm = form == "dense" || form == "deferred";
  layer.deferred = form == "deferred";
  layer.sinkForm = form == "sink";
  if (layer.deferred)
    layer.buffer = object.integer("buffer", 1, kMaxRows);
  if (!layer.denseForm)
    parseFactoredForm(object, layer);
  if (layer.sinkForm && layer.policy.kind != PolicyKind::Fixed)
    malformed(object.place(), ": form 'sink' with another policy than 'fixed'");
  if (layer.denseForm && !holdsMatrices(layer.storage))
    malformed(object.place(), ": a dense layer stored as '",
              storageName(layer.storage), "', expected 'f32', 'f16' or 'bf16'");
  ManifestObject names = object.object("kernels");
  auto find = [&](KernelRole role) {
    return findKernel(names, role, layer, manifest, byName);
  };
  layer.decode = find(KernelRole::Decode);
  if (!layer.denseForm) {
    layer.compact = find(KernelRole::Compact);
    layer.densify = find(KernelRole::Densify);
    if (names.has("init"))
      layer.init = find(KernelRole::Init);
  }
  return layer;
}

CpuCodeManifest parseCpuCode(const Json &json, size_t position) {
  ManifestObject object(json, text("cpu entry ", position));
  CpuCodeManifest code{object.string("isa"), parseFile(object)};
  if (cpuIsaLevel(code.isa) == 0)
    malformed(object.place(), ": isa '", code.isa,
              "', expected 'x86-64-v2', 'x86-64-v3' or 'x86-64-v4'");
  return code;
}

Manifest parseTop(const Json &json) {
  ManifestObject top(json, "the top level");
  checkFormat(top);
  Manifest manifest;
  manifest.model = top.string("model");
  if (top.has("fingerprint"))
    manifest.fingerprint = top.string("fingerprint");
  KernelsByName byName;
  for (const Json &entry : top.array("kernels")) {
    KernelManifest kernel = parseKernel(entry, manifest.kernels.size());
    KernelIndex index = KernelIndex(manifest.kernels.size());
    if (!byName.emplace(kernel.name, index).second)
      malformed("kernel '", kernel.name, "' appears twice");
    manifest.kernels.push_back(std::move(kernel));
  }
  std::set<std::string> layerNames;
  for (const Json &entry : top.array("layers")) {
    LayerManifest layer =
        parseLayer(entry, manifest.layers.size(), manifest, byName);
    if (!layerNames.insert(layer.name).second)
      malformed("layer '", layer.name, "' appears twice");
    manifest.layers.push_back(std::move(layer));
  }
  if (manifest.layers.empty())
    malformed("'layers' is empty, expected at least one layer");
  if (top.has("cpu"))
    for (const Json &entry : top.array("cpu"))
      manifest.cpu.push_back(parseCpuCode(entry, manifest.cpu.size()));
  parseCudaCode(json, manifest);
  return manifest;
}

} // namespace

int32_t LayerManifest::neededRank() const {
  if (policy.kind == PolicyKind::Fixed)
    return int32_t(policy.value) + buffer + draft + sinkForm;
  return std::min(dv, dk) + active + buffer + draft;
}

Manifest parseManifest(std::string_view json) {
  Json parsed;
  try {
    parsed = Json::parse(json.begin(), json.end());
  } catch (const Json::exception &error) {
    // Without the library's own number: "[json.exception.parse_error.101] ".
    const std::string_view line = error.what();
    const size_t end = line.find("] ");
    malformed("it is not JSON (",
              end == line.npos ? line : line.substr(end + 2), ")");
  }
  return parseTop(parsed);
}

} // namespace sinkstate::runtime
