//===- RowConversion.cpp - Arrays of other types at the boundary ----------===//

#include "capi/RowConversion.h"

#include "capi/ElementTypes.h"
#include "engine/DecodeArguments.h"

#include <algorithm>

namespace sinkstate::runtime {
namespace {

/// A GPU's kernels cannot read what lies across the units of its type.
void requireAligned(const char *name, const void *data, int64_t bytes) {
  const uintptr_t beyond = reinterpret_cast<uintptr_t>(data) % uintptr_t(bytes);
  if (beyond != 0)
    fail(SS_INVALID_ARGUMENT, "args.", name, " begins ", beyond,
         " bytes past a multiple of ", bytes, ", expected a multiple of ",
         bytes, ", the size of its elements");
}

/// An array of the caller, [batch, tokens, width] with strides in elements, and
/// where it is staged.
ss::ConvertedArray arrayOf(const char *name, const void *data, int32_t type,
                           int64_t width, int64_t stride, int64_t tokenStride,
                           int32_t tokens, float *staged) {
  if (tokenStride == 0)
    tokenStride = width;
  if (stride == 0)
    stride = tokens * tokenStride;
  if (stride < width || tokenStride < width)
    fail(SS_INVALID_ARGUMENT, "args.", name, " has stride ",
         std::min(stride, tokenStride), ", expected 0 (packed) or at least ",
         width, " elements");
  requireAligned(name, data, type == SS_ELEMENT_F32 ? 4 : 2);
  constexpr int64_t kEight = 8;
  const bool byEight =
      type != SS_ELEMENT_F32 &&
      reinterpret_cast<uintptr_t>(data) % alignof(ss::FourWords) == 0 &&
      width % kEight == 0 && stride % kEight == 0 && tokenStride % kEight == 0;
  return {const_cast<void *>(data), staged, stride, tokenStride, width,
          type, byEight};
}

ss_rows rowsOf(const ss_decode_args &args) {
  return {sizeof(ss_rows),  args.batch,   args.slots, args.slot_type,
          args.padding,     args.padding_value, args.stream};
}

} // namespace

RowConversion::Widths RowConversion::widthsOf(const LayerManifest &layer) {
  return {int64_t(layer.keyHeads) * layer.dk, int64_t(layer.heads) * layer.dv,
          int64_t(layer.heads) * (layer.channelDecay ? layer.dk : 1),
          layer.hasBeta ? layer.heads : 0};
}

RowConversion::Widths RowConversion::mostOf(const Manifest &manifest) {
  Widths most;
  for (const LayerManifest &layer : manifest.layers) {
    const Widths w = widthsOf(layer);
    most = {std::max(most.key, w.key), std::max(most.value, w.value),
            std::max(most.gate, w.gate), std::max(most.beta, w.beta)};
  }
  return most;
}

RowConversion::Places RowConversion::placesFor(const Manifest &manifest,
                                               int32_t maxBatch) {
  const Widths w = mostOf(manifest);
  Places places;
  auto place = [&](int64_t width) {
    const int64_t begin = places.bytes;
    const int64_t bytes = int64_t(maxBatch) * width * int64_t(sizeof(float));
    places.bytes += (bytes + kStagingAlignment - 1) / kStagingAlignment *
                    kStagingAlignment;
    return begin;
  };
  places.stepSlots = place(1);
  places.callSlots = place(1);
  places.q = place(w.key);
  places.k = place(w.key);
  places.v = place(w.value);
  places.gate = place(w.gate);
  places.beta = place(w.beta);
  places.y = place(w.value);
  return places;
}

int64_t RowConversion::bytesFor(const Manifest &manifest, int32_t maxBatch) {
  return placesFor(manifest, maxBatch).bytes;
}

RowConversion::RowConversion(StateEngine &engine,
                             const ss_engine_options &options)
    : layers(engine.manifestOf().layers), maxBatch(options.max_batch),
      slotCount(options.slots), reservedSlots(options.reserved_slots),
      places(placesFor(engine.manifestOf(), options.max_batch)),
      converter(engine.makeRowConverter(places.bytes)),
      oncePerStep(converter->keepsSlots() && options.compaction_streams >= 0) {}

void RowConversion::requireRoom(int32_t batch, int32_t tokens) const {
  const int64_t rows = int64_t(batch) * tokens;
  if (rows > maxBatch)
    fail(SS_INVALID_ARGUMENT, "args.batch", tokens > 1 ? " times tokens.tokens" : "",
         " is ", rows, ", expected at most ", maxBatch,
         " rows to convert (options.max_batch): create the engine with more");
}

const LayerManifest &RowConversion::checkedLayer(int32_t layer) const {
  if (layer < 0 || size_t(layer) >= layers.size())
    fail(SS_INVALID_ARGUMENT, "layer ", layer, ", expected 0 to ",
         int64_t(layers.size()) - 1);
  return layers[size_t(layer)];
}

ss::CallerSlots RowConversion::checkedSlots(const ss_rows &rows) const {
  if (rows.batch < 1)
    fail(SS_INVALID_ARGUMENT, "args.batch is ", rows.batch,
         ", expected at least 1");
  if (!rows.slots)
    fail(SS_INVALID_ARGUMENT, "args.slots is null, expected ", rows.batch,
         " slots");
  if (rows.slot_type != SS_SLOT_I32 && rows.slot_type != SS_SLOT_I64)
    fail(SS_INVALID_ARGUMENT, "args.slot_type is ", rows.slot_type,
         ", expected SS_SLOT_I32 (0) or SS_SLOT_I64 (1)");
  if (rows.padding < SS_PADDING_NEGATIVE || rows.padding > SS_PADDING_UP_TO)
    fail(SS_INVALID_ARGUMENT, "args.padding is ", rows.padding,
         ", expected an ss_padding (0 to 2)");
  const bool isOne = rows.padding == SS_PADDING_VALUE;
  const bool beyond = isOne && rows.padding_value >= slotCount; // nobody's
  if (rows.padding != SS_PADDING_NEGATIVE && !beyond &&
      rows.padding_value >= reservedSlots)
    fail(SS_INVALID_ARGUMENT, "args.padding_value is ", rows.padding_value,
         rows.padding_value < slotCount
             ? ", which a request can own, expected no slot: reserve it "
               "(options.reserved_slots)"
             : ", up to which there are slots that a request can own, expected "
               "less than options.reserved_slots");
  const bool wide = rows.slot_type == SS_SLOT_I64;
  requireAligned("slots", rows.slots, wide ? sizeof(int64_t) : sizeof(int32_t));
  requireRoom(rows.batch, 1);
  return {rows.slots, rows.padding_value, wide, rows.padding, rows.batch,
          slotCount};
}

void RowConversion::convertSlots(const ss_rows &rows, int64_t place) const {
  ss::RowsToTake take = {};
  take.slots = checkedSlots(rows);
  take.slot_rows = staged<int32_t>(place);
  take.tokens = 1;
  converter->take(take, rows.stream);
}

std::span<const int32_t> RowConversion::slotsToBegin(StateEngine &engine,
                                                     const ss_rows &rows) {
  (void)checkedSlots(rows); // before anything is given up
  engine.leaveStep(rows.stream);
  step.reset();
  convertSlots(rows, places.stepSlots);
  return listAt(places.stepSlots, rows.batch);
}

std::span<const int32_t> RowConversion::slots(const ss_rows &rows) {
  if (hasConverted(rows))
    return listAt(places.stepSlots, rows.batch);
  convertSlots(rows, places.callSlots);
  return listAt(places.callSlots, rows.batch);
}

void RowConversion::stepBegins(const ss_rows *rows) {
  step.reset();
  if (rows && oncePerStep)
    step = *rows;
}

/// Whether the staged slots are those of these rows.
bool RowConversion::hasConverted(const ss_rows &rows) const {
  return step && rows.slots == step->slots && rows.batch == step->batch &&
         rows.slot_type == step->slot_type && rows.padding == step->padding &&
         rows.padding_value == step->padding_value;
}

std::array<RowConversion::Input, ss::kMostInputs>
RowConversion::inputsOf(const LayerManifest &layer, ss_decode_args &args,
                        ss_token_args &tokens) const {
  const Widths width = widthsOf(layer);
  const int32_t type = args.input_type, gateType = args.gate_type;
  return {{{"q", &args.q, &tokens.q_token_stride, width.key, layer.dk, type,
            places.q},
           {"k", &args.k, &tokens.k_token_stride, width.key, layer.dk, type,
            places.k},
           {"v", &args.v, &tokens.v_token_stride, width.value, layer.dv, type,
            places.v},
           {"gate", &args.gate, &tokens.gate_token_stride, width.gate,
            layer.channelDecay ? layer.dk : 1, gateType, places.gate},
           {"beta", &args.beta, &tokens.beta_token_stride, width.beta, 1,
            gateType, places.beta}}};
}

bool RowConversion::isToConvert(const Input &input, int32_t batch,
                                int32_t tokens) const {
  if (!input.rows->data || input.width == 0)
    return false;
  const int64_t unit = converter->rowUnit();
  auto atUnits = [&](int64_t stride) {
    return beginAtUnits(input.rows->data, stride, input.headElements, unit);
  };
  return input.type != SS_ELEMENT_F32 ||
         !atUnits(batch > 1 ? input.rows->stride : 0) ||
         (tokens > 1 && !atUnits(*input.tokenStride));
}

bool RowConversion::hasToMove(int32_t index, const ss_decode_args &given,
                              const ss_token_args *givenTokens) const {
  if (converter->rowUnit() == 1 || index < 0 || size_t(index) >= layers.size())
    return false;
  const LayerManifest &layer = layers[size_t(index)];
  ss_decode_args args = given;
  ss_token_args tokens = givenTokens ? *givenTokens : ss_token_args{};
  const std::array inputs = inputsOf(layer, args, tokens);
  return std::any_of(inputs.begin(), inputs.end(), [&](const Input &input) {
           return isToConvert(input, args.batch, tokens.tokens);
         }) || yIsToConvert(layer, args, tokens);
}

/// Replaces what kernels do not take by what they do. One launch on a GPU, or none.
void RowConversion::takeInputs(const LayerManifest &layer,
                               ss_decode_args &args,
                               ss_token_args &tokens) {
  checkedElementType("args.input_type", args.input_type);
  checkedElementType("args.gate_type", args.gate_type);
  ss::RowsToTake take = {};
  take.slots = checkedSlots(rowsOf(args));
  requireRoom(args.batch, tokens.tokens);
  const bool converted = hasConverted(rowsOf(args));
  auto *slots = staged<int32_t>(converted ? places.stepSlots
                                          : places.callSlots);
  if (converted)
    take.slots = {slots, 0, 0, SS_PADDING_NEGATIVE, args.batch, slotCount};
  else
    take.slot_rows = slots;
  take.tokens = tokens.tokens;
  for (const Input &input : inputsOf(layer, args, tokens)) {
    if (!isToConvert(input, args.batch, tokens.tokens))
      continue;
    auto *to = staged<float>(input.place);
    take.inputs[take.count++] =
        arrayOf(input.name, input.rows->data, input.type, input.width,
                input.rows->stride, *input.tokenStride, tokens.tokens, to);
    *input.rows = {to, 0};
    *input.tokenStride = 0;
  }
  if (take.count > 0 || (!converted && needsConversion(rowsOf(args))))
    converter->take(take, args.stream);
  // Of several rows that are as kernels take them the step has a list of its own.
  if (needsConversion(rowsOf(args)) || (take.count > 0 && args.batch == 1))
    args.slots = slots;
  args.slot_type = args.padding = 0;
  args.input_type = args.gate_type = SS_ELEMENT_F32;
}

bool RowConversion::yIsToConvert(const LayerManifest &layer,
                                 ss_decode_args &args,
                                 ss_token_args &tokens) const {
  ss_input rows = {args.y, args.y_stride};
  return isToConvert({"y", &rows, &tokens.y_token_stride, widthsOf(layer).value,
                      layer.dv, args.y_type, places.y},
                     args.batch, tokens.tokens);
}

void RowConversion::decode(StateEngine &engine, int32_t index,
                           const ss_decode_args &given,
                           const ss_token_args *givenTokens) {
  const LayerManifest &layer = checkedLayer(index);
  checkedElementType("args.y_type", given.y_type);
  ss_decode_args args = given;
  ss_token_args tokens = givenTokens ? *givenTokens : ss_token_args{};
  if (!givenTokens)
    tokens.tokens = 1;
  if (tokens.tokens < 1)
    fail(SS_INVALID_ARGUMENT, "tokens.tokens is ", tokens.tokens,
         ", expected at least 1");
  ss::RowsToGive give = {{}, given.batch, tokens.tokens};
  const bool convertsY = yIsToConvert(layer, args, tokens);
  if (convertsY)
    give.y = arrayOf("y", given.y, given.y_type, widthsOf(layer).value, given.y_stride,
                     tokens.y_token_stride, tokens.tokens,
                     staged<float>(places.y));
  takeInputs(layer, args, tokens);
  args.y_type = SS_ELEMENT_F32;
  if (convertsY) {
    args.y = give.y.staged;
    args.y_stride = tokens.y_token_stride = 0;
  }
  if (givenTokens)
    engine.decodeTokens(index, args, tokens);
  else
    engine.decodeLayer(index, args);
  if (convertsY)
    converter->give(give, args.stream);
}

bool needsConversion(const ss_rows &rows) {
  return rows.slot_type != SS_SLOT_I32 || rows.padding != SS_PADDING_NEGATIVE;
}

bool needsConversion(const ss_decode_args &args) {
  return needsConversion(rowsOf(args)) || args.input_type != SS_ELEMENT_F32 ||
         args.gate_type != SS_ELEMENT_F32 || args.y_type != SS_ELEMENT_F32;
}

RowConversion &requireConversion(RowConversion *conversion) {
  if (!conversion)
    fail(SS_INVALID_ARGUMENT,
         "options.max_batch is 0, expected the rows of the largest batch where "
         "slots are not int32, padding is not negative or elements are not "
         "f32: create the engine with it");
  return *conversion;
}

/// Decodes; errors are of `args`.
static void decodeAny(StateEngine &engine, RowConversion *conversion,
                      int32_t layer, const ss_decode_args &args,
                      const ss_token_args *tokens) {
  if (args.reserved != 0)
    fail(SS_INVALID_ARGUMENT, "args.reserved is ", args.reserved,
         ", expected 0: set the whole struct to zero first");
  if (needsConversion(args) ||
      (conversion && conversion->hasToMove(layer, args, tokens)))
    requireConversion(conversion).decode(engine, layer, args, tokens);
  else if (tokens)
    engine.decodeTokens(layer, args, *tokens);
  else
    engine.decodeLayer(layer, args);
}

void decodeConverted(StateEngine &engine, RowConversion *conversion,
                     int32_t layer, const ss_decode_args &args,
                     const ss_token_args *tokens) {
  try {
    decodeAny(engine, conversion, layer, args, tokens);
  } catch (const Failure &failure) {
    const std::vector<LayerManifest> &layers = engine.manifestOf().layers;
    const std::string line = failure.what();
    if (layer < 0 || size_t(layer) >= layers.size() || !line.starts_with("args."))
      throw;
    fail(failure.code(), "layer '", layers[size_t(layer)].name, "': ", line);
  }
}

} // namespace sinkstate::runtime
