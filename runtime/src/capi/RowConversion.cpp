//===- RowConversion.cpp - Arrays of other types at the boundary ----------===//

#include "capi/RowConversion.h"

#include "capi/ElementTypes.h"

#include <algorithm>

namespace sinkstate::runtime {
namespace {

using numeric::ElementType;

/// An array of the caller: [batch, tokens, width] with strides in elements.
struct Rows {
  int64_t stride, tokenStride;

  const void *at(const void *data, ElementType type, int64_t row,
                 int64_t token) const {
    return static_cast<const std::byte *>(data) +
           (row * stride + token * tokenStride) * numeric::elementBytes(type);
  }
};

Rows packed(const char *name, int64_t width, int64_t stride,
            int64_t tokenStride, int32_t tokens) {
  if (tokenStride == 0)
    tokenStride = width;
  if (stride == 0)
    stride = tokens * tokenStride;
  if (stride < width || tokenStride < width)
    fail(SS_INVALID_ARGUMENT, "args.", name, " has stride ",
         std::min(stride, tokenStride), ", expected 0 (packed) or at least ",
         width, " elements");
  return {stride, tokenStride};
}

/// One f32 row of `width` after the other. Padding rows may point at anything:
/// they are not read.
void takeRows(const void *from, ElementType type, const Rows &rows,
              std::span<const int32_t> slots, int32_t tokens, int64_t width,
              float *to) {
  for (size_t row = 0; row < slots.size(); ++row)
    for (int32_t token = 0; token < tokens; ++token, to += width)
      if (slots[row] < 0)
        std::fill_n(to, width, 0.0f);
      else
        numeric::loadElements(type, to,
                              rows.at(from, type, int64_t(row), token), width);
}

void giveRows(void *to, ElementType type, const Rows &rows, int32_t batch,
              int32_t tokens, int64_t width, const float *from) {
  for (int32_t row = 0; row < batch; ++row)
    for (int32_t token = 0; token < tokens; ++token, from += width)
      numeric::storeElements(
          type, const_cast<void *>(rows.at(to, type, row, token)), from, width);
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

int64_t RowConversion::bytesFor(const Manifest &manifest, int32_t maxBatch) {
  const Widths w = mostOf(manifest);
  return int64_t(maxBatch) * 4 *
         (1 + 2 * w.key + 2 * w.value + w.gate + w.beta);
}

RowConversion::RowConversion(const Manifest &manifest,
                             const ss_engine_options &options)
    : layers(manifest.layers), maxBatch(options.max_batch),
      slotCount(options.slots), reservedSlots(options.reserved_slots),
      allBytes(bytesFor(manifest, options.max_batch)),
      slotRows(size_t(options.max_batch)) {
  const Widths w = mostOf(manifest);
  const size_t rows = size_t(maxBatch);
  q.resize(rows * size_t(w.key));
  k.resize(rows * size_t(w.key));
  v.resize(rows * size_t(w.value));
  gate.resize(rows * size_t(w.gate));
  beta.resize(rows * size_t(w.beta));
  y.resize(rows * size_t(w.value));
}

void RowConversion::requireRoom(int64_t rows) const {
  if (rows > maxBatch)
    fail(SS_INVALID_ARGUMENT, rows, " rows to convert, expected at most ",
         maxBatch, " (options.max_batch): create the engine with more");
}

const LayerManifest &RowConversion::checkedLayer(int32_t layer) const {
  if (layer < 0 || size_t(layer) >= layers.size())
    fail(SS_INVALID_ARGUMENT, "layer ", layer, ", expected 0 to ",
         int64_t(layers.size()) - 1);
  return layers[size_t(layer)];
}

std::span<const int32_t> RowConversion::slots(const ss_rows &rows) {
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
  const bool byValue = rows.padding != SS_PADDING_NEGATIVE;
  if (byValue && rows.padding_value >= reservedSlots &&
      rows.padding_value < slotCount)
    fail(SS_INVALID_ARGUMENT, "args.padding_value is ", rows.padding_value,
         ", which a request can own, expected no slot: reserve it "
         "(options.reserved_slots)");
  requireRoom(rows.batch);
  for (int32_t row = 0; row < rows.batch; ++row) {
    const int64_t slot = rows.slot_type == SS_SLOT_I64
                             ? static_cast<const int64_t *>(rows.slots)[row]
                             : static_cast<const int32_t *>(rows.slots)[row];
    const bool isPadding =
        rows.padding == SS_PADDING_NEGATIVE ? slot < 0
        : rows.padding == SS_PADDING_VALUE  ? slot == rows.padding_value
                                            : slot <= rows.padding_value;
    if (!isPadding && (slot < 0 || slot >= slotCount))
      fail(SS_INVALID_ARGUMENT, "slot ", slot, ", expected 0 to ",
           slotCount - 1, " or padding");
    slotRows[size_t(row)] = isPadding ? -1 : int32_t(slot);
  }
  return {slotRows.data(), size_t(rows.batch)};
}

void RowConversion::decode(StateEngine &engine, int32_t index,
                           const ss_decode_args &given,
                           const ss_token_args *givenTokens) {
  const LayerManifest &layer = checkedLayer(index);
  const ElementType inputType =
      checkedElementType("args.input_type", given.input_type);
  const ElementType gateType =
      checkedElementType("args.gate_type", given.gate_type);
  const ElementType yType = checkedElementType("args.y_type", given.y_type);
  const Widths width = widthsOf(layer);
  ss_decode_args args = given;
  ss_token_args tokens = givenTokens ? *givenTokens : ss_token_args{};
  const int32_t perRow = givenTokens ? tokens.tokens : 1;
  if (perRow < 1)
    fail(SS_INVALID_ARGUMENT, "tokens.tokens is ", perRow,
         ", expected at least 1");
  const std::span<const int32_t> slotsOfRows = slots(rowsOf(given));
  args.slots = slotsOfRows.data();
  args.slot_type = args.padding = 0;
  args.input_type = args.gate_type = args.y_type = 0;
  requireRoom(int64_t(given.batch) * perRow);
  auto take = [&](const char *name, ss_input &input, int64_t &tokenStride,
                  int64_t rowWidth, ElementType type, std::vector<float> &to) {
    if (type == ElementType::F32 || !input.data || rowWidth == 0)
      return;
    const Rows rows = packed(name, rowWidth, input.stride, tokenStride, perRow);
    takeRows(input.data, type, rows, slotsOfRows, perRow, rowWidth, to.data());
    input = {to.data(), 0};
    tokenStride = 0;
  };
  take("q", args.q, tokens.q_token_stride, width.key, inputType, q);
  take("k", args.k, tokens.k_token_stride, width.key, inputType, k);
  take("v", args.v, tokens.v_token_stride, width.value, inputType, v);
  take("gate", args.gate, tokens.gate_token_stride, width.gate, gateType, gate);
  take("beta", args.beta, tokens.beta_token_stride, width.beta, gateType, beta);
  const bool convertsY = yType != ElementType::F32 && given.y;
  Rows out = {};
  if (convertsY) {
    out = packed("y", width.value, given.y_stride, tokens.y_token_stride,
                 perRow);
    args.y = y.data();
    args.y_stride = tokens.y_token_stride = 0;
  }
  if (givenTokens)
    engine.decodeTokens(index, args, tokens);
  else
    engine.decodeLayer(index, args);
  if (convertsY)
    giveRows(given.y, yType, out, given.batch, perRow, width.value, y.data());
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

void decodeConverted(StateEngine &engine, RowConversion *conversion,
                     int32_t layer, const ss_decode_args &args,
                     const ss_token_args *tokens) {
  if (args.reserved != 0)
    fail(SS_INVALID_ARGUMENT, "args.reserved is ", args.reserved,
         ", expected 0: set the whole struct to zero first");
  if (needsConversion(args))
    requireConversion(conversion).decode(engine, layer, args, tokens);
  else if (tokens)
    engine.decodeTokens(layer, args, *tokens);
  else
    engine.decodeLayer(layer, args);
}

} // namespace sinkstate::runtime
