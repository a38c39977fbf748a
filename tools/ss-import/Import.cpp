//===- Import.cpp - From a model's config.json to ss.model ----------------===//

#include "tools/ss-import/Import.h"

#include "dialect/ss/SS.h"
#include "dialect/ss/SSSizes.h"
#include "tools/command-line/InputText.h"
#include "tools/ss-import/ModelFamilies.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace mlir;
using namespace sinkstate;

using ImportResult = FailureOr<OwningOpRef<ModuleOp>>;

/// Of a config; those of published models have fewer than ten.
static constexpr unsigned kMostNestedLevels = 256;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

ss::Storage Storages::of(ss::LayerType type) const {
  for (const auto &[of, storage] : named)
    if (of == type)
      return storage;
  return others;
}

llvm::Expected<Storages> sinkstate::parseStorages(StringRef text) {
  const auto fail = [&](const llvm::Twine &found) {
    return llvm::createStringError(
        "storage is '" + text + "'" + found + ", expected " +
        ss::listKeywords<ss::Storage>() +
        ", and behind it +TYPE=STORAGE for layers of a type (" +
        ss::listKeywords<ss::LayerType>() + "), such as fp8+kda=f16");
  };
  SmallVector<StringRef> parts;
  text.split(parts, '+');
  Storages result;
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto [name, value] = part.split('=');
    std::optional<ss::Storage> storage =
        ss::symbolizeStorage(i == 0 ? part : value);
    std::optional<ss::LayerType> type;
    if (i > 0)
      type = ss::symbolizeLayerType(name);
    if (!storage || (i > 0 && !type))
      return fail("");
    if (!type) {
      result.others = *storage;
      continue;
    }
    for (const auto &[of, other] : result.named)
      if (of == *type)
        return fail(", which names " + name + " twice");
    result.named.push_back({*type, *storage});
  }
  return result;
}

llvm::Error sinkstate::setPolicy(ImportOptions &options, StringRef text) {
  auto [word, number] = text.split(':');
  // A fixed rank beside the sink, which is no component of it.
  const bool isSink = word == "sink";
  std::optional<ss::PolicyKind> kind =
      isSink ? ss::PolicyKind::fixed : ss::symbolizePolicyKind(word);
  double value;
  if (!kind || number.empty() || number.getAsDouble(value) ||
      !std::isfinite(value))
    return llvm::createStringError(
        "policy is '" + text + "', expected KIND:NUMBER with KIND one of " +
        ss::listKeywords<ss::PolicyKind>() +
        ", such as relative:0.03, or sink:RANK for form sink");
  if (isSink && (value < 1 || value != std::floor(value)))
    return llvm::createStringError("policy is '" + text +
                                   "', expected sink:RANK with RANK a whole number "
                                   "of at least 1");
  options.policyKind = *kind;
  options.policyValue = value;
  if (isSink)
    options.form = ss::Form::sink;
  return llvm::Error::success();
}

/// The options of a layer after what a fixed rank decides, or failure.
static FailureOr<ImportOptions> resolveOptions(ImportOptions options,
                                               Location loc) {
  auto emit = [&] { return emitError(loc); };
  // Checks the value: R below is a whole number of at least 1.
  auto policy =
      ss::PolicyAttr::getChecked(emit, loc.getContext(), options.policyKind,
                                 llvm::APFloat(options.policyValue));
  if (!policy)
    return failure();
  if (options.draft < 0)
    return emit() << "'draft' is " << options.draft << ", expected 0 or more";
  if (policy.isFixed()) {
    options.active = options.buffer = policy.getCount();
    const int64_t most = (ss::kMaxBlockRows - options.draft) / 2;
    if (most >= 1 && options.active > most)
      return emit() << "policy 'fixed' has rank " << options.active
                    << ", expected at most " << most
                    << ": a compaction takes up to " << ss::kMaxBlockRows
                    << " components, twice the rank and the draft tokens ("
                    << options.draft << ")";
  }
  if (failed(ss::verifyBlockSizes(emit, options.active, options.buffer,
                                  options.draft)))
    return failure();
  return options;
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

static void buildLayer(OpBuilder &builder, Location loc,
                       const LayerDescription &layer,
                       const ImportOptions &options) {
  MLIRContext *context = builder.getContext();
  const ss::Storage storage = options.storage.of(layer.type);
  const bool roundsNothing =
      storage == ss::Storage::f32 && !options.storage.named.empty();
  auto i64 = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  auto f64 = [&](double value) { return builder.getF64FloatAttr(value); };
  ss::LayerOp::create(
      builder, loc,
      builder.getStringAttr("layer" + std::to_string(layer.index)),
      ss::LayerTypeAttr::get(context, layer.type), i64(layer.index),
      i64(layer.heads), i64(layer.keyHeads), i64(layer.dv), i64(layer.dk),
      ss::GateAttr::get(context, layer.gate, layer.gateBound),
      ss::NormAttr::get(context, layer.norm, layer.normEps),
      f64(layer.queryScale),
      ss::PolicyAttr::get(context, options.policyKind, options.policyValue),
      i64(options.active), i64(options.buffer),
      options.core ? ss::CoreKindAttr::get(context, *options.core)
                   : ss::CoreKindAttr(),
      ss::StorageAttr::get(context, storage),
      options.rounding == ss::Rounding::nearest || roundsNothing
          ? ss::RoundingAttr()
          : ss::RoundingAttr::get(context, options.rounding),
      ss::FormAttr::get(context, options.form), f64(layer.betaScale),
      i64(options.draft), /*kernels=*/DictionaryAttr(),
      /*sym_visibility=*/StringAttr());
}

/// A symbol from the name of a file or preset.
static std::string makeSymbol(StringRef name) {
  std::string symbol;
  for (char c : name)
    symbol += llvm::isAlnum(c) ? c : '_';
  if (symbol.empty() || llvm::isDigit(symbol.front()))
    symbol.insert(0, "model_");
  return symbol;
}

static ImportResult buildModule(StringRef name,
                                ArrayRef<LayerDescription> layers,
                                const ImportOptions &given, Location loc) {
  loc.getContext()->loadDialect<ss::SSDialect>();
  // Wrong options are no fault of the file.
  FailureOr<ImportOptions> options =
      resolveOptions(given, UnknownLoc::get(loc.getContext()));
  if (failed(options))
    return failure();
  for (const auto &[type, storage] : options->storage.named)
    if (llvm::none_of(layers, [type = type](const LayerDescription &layer) {
          return layer.type == type;
        }))
      return emitError(loc) << "has no layer of type "
                            << ss::stringifyLayerType(type)
                            << ", expected the storage of a type that it has";
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto model = ss::ModelOp::create(builder, loc, makeSymbol(name));
  builder.setInsertionPointToStart(&model.getBody().front());
  for (const LayerDescription &layer : layers)
    buildLayer(builder, loc, layer, *options);
  if (failed(verify(*module)))
    return failure();
  return module;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// JSON as Python writes it may hold Infinity and NaN, which JSON does not
/// have; no key that is read here can be either. Columns stay as they are.
static std::string replaceNonNumbers(StringRef text) {
  std::string result = text.str();
  bool inString = false;
  for (size_t i = 0; i < result.size(); ++i) {
    if (inString && result[i] == '\\') {
      ++i;
      continue;
    }
    if (result[i] == '"')
      inString = !inString;
    if (inString)
      continue;
    for (StringRef word : {"-Infinity", "Infinity", "NaN"})
      if (StringRef(result).substr(i).starts_with(word))
        result.replace(
            i, word.size(),
            word == "NaN" ? "0.0" : "null" + std::string(word.size() - 4, ' '));
  }
  return result;
}

/// Where JSON nests deeper than any config does: the parser recurses, and would
/// leave its stack. The line, from 1, or nothing.
static std::optional<unsigned> findDeepNesting(StringRef text) {
  unsigned depth = 0, line = 1;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    line += c == '\n';
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{'))
      ++depth;
    else if (!inString && (c == ']' || c == '}') && depth > 0)
      --depth;
    if (depth > kMostNestedLevels)
      return line;
  }
  return std::nullopt;
}

/// Parses JSON; a syntax error is told with its line and column.
static std::optional<llvm::json::Value>
parseJson(StringRef text, StringRef file, MLIRContext *context) {
  if (std::optional<unsigned> line = findDeepNesting(text)) {
    emitError(FileLineColLoc::get(context, file, *line, 0))
        << "nests more than " << kMostNestedLevels
        << " levels deep, expected a model's config";
    return std::nullopt;
  }
  llvm::Expected<llvm::json::Value> value =
      llvm::json::parse(replaceNonNumbers(text));
  if (value)
    return std::move(*value);
  // The message starts with "[line:column, byte=offset]: ".
  std::string message = llvm::toString(value.takeError());
  StringRef rest = message;
  unsigned line = 0, column = 0;
  if (rest.consume_front("[") && !rest.consumeInteger(10, line) &&
      rest.consume_front(":") && !rest.consumeInteger(10, column))
    rest = rest.split("]: ").second;
  else
    rest = message;
  emitError(FileLineColLoc::get(context, file, line, column))
      << "is not JSON: " << rest << ", expected a model's config";
  return std::nullopt;
}

static ImportResult importText(StringRef text, StringRef file, StringRef name,
                               const ImportOptions &options,
                               MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, file, 0, 0);
  std::optional<llvm::json::Value> value = parseJson(text, file, context);
  if (!value)
    return failure();
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return emitError(loc) << "holds no JSON object, expected a model's config";
  FailureOr<SmallVector<LayerDescription>> layers =
      readLayers(ConfigNode(*object, "", loc));
  if (failed(layers))
    return failure();
  return buildModule(name, *layers, options, loc);
}

ImportResult sinkstate::importConfig(StringRef path,
                                     const ImportOptions &options,
                                     MLIRContext *context) {
  SmallString<128> file(path);
  if (llvm::sys::fs::is_directory(path))
    llvm::sys::path::append(file, "config.json");
  auto buffer = tools::readText(file);
  if (!buffer)
    return emitError(FileLineColLoc::get(context, file, 0, 0))
           << "cannot be read: " << buffer.getError().message()
           << "; expected a config.json or a folder with one";
  // Models lie in folders of their name.
  StringRef name = llvm::sys::path::stem(file);
  SmallString<128> absolute(file);
  if (name == "config" && !llvm::sys::fs::make_absolute(absolute)) {
    llvm::sys::path::remove_dots(absolute, /*remove_dot_dot=*/true);
    name = llvm::sys::path::filename(llvm::sys::path::parent_path(absolute));
  }
  return importText((*buffer)->getBuffer(), file, name, options, context);
}

ImportResult sinkstate::importPreset(StringRef name,
                                     const ImportOptions &options,
                                     MLIRContext *context) {
  for (const Preset &preset : getPresets())
    if (preset.name == name)
      return importText(preset.config, ("preset " + name).str(), name, options,
                        context);
  InFlightDiagnostic diagnostic = emitError(UnknownLoc::get(context));
  diagnostic << "preset '" << name << "' is unknown, expected one of ";
  llvm::interleaveComma(getPresets(), diagnostic,
                        [&](const Preset &p) { diagnostic << p.name; });
  return diagnostic;
}
