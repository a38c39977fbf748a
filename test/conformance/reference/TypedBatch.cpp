//===- TypedBatch.cpp - Batches in a caller's own types -------------------===//

#include "TypedBatch.h"

#include "numeric/Elements.h"

#include <cstring>
#include <limits>
#include <ostream>
#include <stdexcept>

namespace sinkstate::reference {
namespace {

using numeric::ElementType;

ElementType elementType(int32_t type) {
  return type == SS_ELEMENT_F32   ? ElementType::F32
         : type == SS_ELEMENT_F16 ? ElementType::F16
                                  : ElementType::BF16;
}

constexpr std::byte kUntouched{0x5a};

std::vector<float> gathered(const std::vector<TokenValues> &rows,
                            std::vector<float> TokenValues::*member,
                            size_t width) {
  std::vector<float> all;
  for (const TokenValues &row : rows)
    if (row.q.empty())
      all.insert(all.end(), width, std::numeric_limits<float>::quiet_NaN());
    else
      all.insert(all.end(), (row.*member).begin(), (row.*member).end());
  return all;
}

} // namespace

std::ostream &operator<<(std::ostream &stream, const RowForm &form) {
  return stream << "inputs " << form.inputType << " gates " << form.gateType
                << " y " << form.yType << " slots " << form.slotType
                << " padding " << form.padding << " gap " << form.gap;
}

std::vector<RowForm> allRowForms() {
  constexpr int32_t f32 = SS_ELEMENT_F32, f16 = SS_ELEMENT_F16,
                    bf16 = SS_ELEMENT_BF16;
  std::vector<RowForm> forms;
  for (const auto &types : {std::array{f32, f32, f32}, {f16, f16, f16},
                            {bf16, bf16, bf16}, {bf16, f32, f16},
                            {f32, bf16, f32}, {f16, f32, f32}, {f32, f32, bf16}})
    for (int32_t slotType : {SS_SLOT_I32, SS_SLOT_I64})
      for (int32_t padding :
           {SS_PADDING_NEGATIVE, SS_PADDING_VALUE, SS_PADDING_UP_TO})
        for (int64_t gap : {0, 8, 3})
          forms.push_back(
              {types[0], types[1], types[2], slotType, padding, gap});
  return forms;
}

std::vector<float> roundedTo(int32_t type, const std::vector<float> &values) {
  std::vector<std::byte> stored(values.size() * sizeof(float));
  std::vector<float> rounded(values.size());
  const auto count = int64_t(values.size());
  numeric::storeElements(elementType(type), stored.data(), values.data(), count);
  numeric::loadElements(elementType(type), rounded.data(), stored.data(), count);
  return rounded;
}

TokenValues roundedTo(const RowForm &form, TokenValues values) {
  for (std::vector<float> *array : {&values.q, &values.k, &values.v})
    *array = roundedTo(form.inputType, *array);
  for (std::vector<float> *array : {&values.gate, &values.beta})
    *array = roundedTo(form.gateType, *array);
  return values;
}

double unitRoundoff(int32_t type) {
  return type == SS_ELEMENT_F32 ? 0x1p-24 : type == SS_ELEMENT_F16 ? 0x1p-11
                                                                   : 0x1p-8;
}

/// [batch, tokens, width] of a type, with gaps.
struct TypedBatch::Array {
  Array(Engine &engine, int32_t type, int64_t batch, int64_t tokens,
        int64_t width, int64_t gap)
      : type(elementType(type)), batch(batch), tokens(tokens), width(width),
        gap(gap),
        memory(engine, size_t((gap + batch * stride() + gap) *
                              numeric::elementBytes(this->type))) {}

  int64_t tokenStride() const { return width + gap; }
  int64_t stride() const { return tokens * tokenStride() + gap; }
  std::byte *data() const {
    return memory.data() + gap * numeric::elementBytes(type);
  }
  ss_input input() const {
    return {reinterpret_cast<const float *>(data()), stride()};
  }

  /// Calls `body(row and token, offset in bytes)` for every row of every token.
  template <typename Body> void overRows(const Body &body) const {
    for (int64_t row = 0; row < batch; ++row)
      for (int64_t token = 0; token < tokens; ++token)
        body(row * tokens + token,
             (gap + row * stride() + token * tokenStride()) *
                 numeric::elementBytes(type));
  }
  void copyIn(const std::vector<float> &values) {
    std::vector<std::byte> bytes(memory.size(), kUntouched);
    overRows([&](int64_t row, int64_t at) {
      numeric::storeElements(type, bytes.data() + at,
                             values.data() + row * width, width);
    });
    memory.copyIn(bytes);
  }
  void clear() {
    memory.copyIn(std::vector<std::byte>(memory.size(), kUntouched));
  }
  std::vector<float> copyOut() const {
    std::vector<std::byte> bytes = memory.copyOut();
    std::vector<float> values(size_t(batch * tokens * width));
    overRows([&](int64_t row, int64_t at) {
      numeric::loadElements(type, values.data() + row * width,
                            bytes.data() + at, width);
      std::fill_n(bytes.begin() + at, width * numeric::elementBytes(type),
                  kUntouched);
    });
    for (std::byte b : bytes)
      if (b != kUntouched)
        throw std::runtime_error("something beside the rows was written");
    return values;
  }

  ElementType type;
  int64_t batch, tokens, width, gap;
  DeviceArray<std::byte> memory;
};

struct TypedBatch::LayerArrays {
  LayerArrays(Engine &engine, const LayerSpec &layer, size_t index,
              const RowForm &form, int64_t n, int64_t tokens)
      : q(engine, form.inputType, n, tokens, layer.keyFloats(), form.gap),
        k(engine, form.inputType, n, tokens, layer.keyFloats(), form.gap),
        v(engine, form.inputType, n, tokens, layer.valueFloats(), form.gap),
        gate(engine, form.gateType, n, tokens, layer.gateFloats(), form.gap),
        beta(engine, form.gateType, n, tokens, layer.heads, form.gap),
        y(engine, form.yType, n, tokens, layer.valueFloats(), form.gap),
        aLog(engine, size_t(layer.heads)),
        dtBias(engine, size_t(layer.gateFloats())) {
    const LayerWeights weights = randomWeights(layer, index);
    aLog.copyIn(weights.aLog);
    dtBias.copyIn(weights.dtBias);
  }
  Array q, k, v, gate, beta, y;
  DeviceArray<float> aLog, dtBias;
};

TypedBatch::TypedBatch(Engine &engine, const std::vector<LayerSpec> &specs,
                       const RowForm &form, int32_t batch, int32_t tokens)
    : engine(engine), layers(specs), form(form), batch(batch), tokens(tokens),
      narrowSlots(engine, size_t(batch)), wideSlots(engine, size_t(batch)) {
  for (size_t i = 0; i < layers.size(); ++i)
    arrays.emplace_back(engine, layers[i], i, form, batch, tokens);
}

TypedBatch::~TypedBatch() = default;

void TypedBatch::setSlots(const std::vector<int32_t> &slots) {
  std::vector<int32_t> narrow = slots;
  for (size_t row = 0; row < narrow.size(); ++row)
    if (narrow[row] < 0)
      narrow[row] = form.padding == SS_PADDING_NEGATIVE ? -1 - int32_t(row)
                    : form.padding == SS_PADDING_VALUE  ? 0
                                                        : -int32_t(row);
  narrowSlots.copyIn(narrow);
  wideSlots.copyIn({narrow.begin(), narrow.end()});
}

void TypedBatch::fill(size_t layer, const std::vector<TokenValues> &rows) {
  LayerArrays &to = arrays[layer];
  to.q.copyIn(gathered(rows, &TokenValues::q, size_t(to.q.width)));
  to.k.copyIn(gathered(rows, &TokenValues::k, size_t(to.k.width)));
  to.v.copyIn(gathered(rows, &TokenValues::v, size_t(to.v.width)));
  to.gate.copyIn(gathered(rows, &TokenValues::gate, size_t(to.gate.width)));
  if (layers[layer].hasBeta())
    to.beta.copyIn(gathered(rows, &TokenValues::beta, size_t(to.beta.width)));
  to.y.clear();
}

ss_decode_args TypedBatch::args(size_t layer) const {
  const LayerArrays &from = arrays[layer];
  ss_decode_args args = decodeArgs();
  args.batch = batch;
  args.slots = static_cast<const int32_t *>(rows().slots);
  args.slot_type = form.slotType;
  args.padding = form.padding;
  args.input_type = form.inputType;
  args.gate_type = form.gateType;
  args.y_type = form.yType;
  args.q = from.q.input();
  args.k = from.k.input();
  args.v = from.v.input();
  args.gate = from.gate.input();
  if (layers[layer].hasBeta())
    args.beta = from.beta.input();
  args.a_log = from.aLog.data();
  args.dt_bias = from.dtBias.data();
  args.y = reinterpret_cast<float *>(from.y.data());
  args.y_stride = from.y.stride();
  return args;
}

ss_rows TypedBatch::rows() const {
  const void *slots = form.slotType == SS_SLOT_I64
                          ? static_cast<const void *>(wideSlots.data())
                          : narrowSlots.data();
  return {sizeof(ss_rows), batch, slots, form.slotType, form.padding, 0,
          nullptr};
}

void TypedBatch::enqueue(void *stream) {
  ss_rows slots = rows();
  slots.stream = stream;
  engine.beginStepRows(slots);
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerArrays &from = arrays[i];
    ss_decode_args call = args(i);
    call.stream = stream;
    ss_token_args several = {};
    several.struct_size = sizeof several;
    several.tokens = tokens;
    several.q_token_stride = from.q.tokenStride();
    several.k_token_stride = from.k.tokenStride();
    several.v_token_stride = from.v.tokenStride();
    several.gate_token_stride = from.gate.tokenStride();
    several.beta_token_stride = from.beta.tokenStride();
    several.y_token_stride = from.y.tokenStride();
    if (tokens == 1)
      engine.decodeLayer(int32_t(i), call);
    else
      engine.decodeTokens(int32_t(i), call, several);
  }
  engine.endStepRows(slots);
}

std::vector<float> TypedBatch::y(size_t layer) const {
  return arrays[layer].y.copyOut();
}

} // namespace sinkstate::reference
