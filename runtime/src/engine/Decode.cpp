//===- Decode.cpp - One token in one layer --------------------------------===//

#include "engine/Engine.h"

#include "capi/Failure.h"
#include "engine/Stopwatch.h"

namespace sinkstate::runtime {
namespace {

struct BatchArray {
  const char *name;
  const void *data;
  int64_t stride, width;
};

void checkArray(const BatchArray &array) {
  if (!array.data)
    fail(SS_INVALID_ARGUMENT, "args.", array.name, " is null, expected rows of ",
         array.width, " floats");
  if (array.stride != 0 && array.stride < array.width)
    fail(SS_INVALID_ARGUMENT, "args.", array.name, " has stride ",
         array.stride, ", expected 0 (packed) or at least ", array.width,
         " floats");
}

int64_t packedOr(int64_t stride, int64_t width) {
  return stride == 0 ? width : stride;
}

struct DecodeWidths {
  explicit DecodeWidths(const LayerManifest &layer)
      : key(int64_t(layer.keyHeads) * layer.dk),
        value(int64_t(layer.heads) * layer.dv),
        gate(int64_t(layer.heads) * (layer.channelDecay ? layer.dk : 1)),
        beta(layer.heads) {}
  int64_t key, value, gate, beta;
};

} // namespace

void Engine::checkDecode(const LayerState &layer, const ss_decode_args &args) {
  const LayerManifest &manifest = layer.manifest();
  if (args.batch < 1)
    fail(SS_INVALID_ARGUMENT, "args.batch is ", args.batch,
         ", expected at least 1");
  if (!args.slots)
    fail(SS_INVALID_ARGUMENT, "args.slots is null, expected ", args.batch,
         " slots");
  const DecodeWidths width(manifest);
  checkArray({"q", args.q.data, args.q.stride, width.key});
  checkArray({"k", args.k.data, args.k.stride, width.key});
  checkArray({"v", args.v.data, args.v.stride, width.value});
  checkArray({"gate", args.gate.data, args.gate.stride, width.gate});
  if (manifest.hasBeta)
    checkArray({"beta", args.beta.data, args.beta.stride, width.beta});
  checkArray({"a_log", args.a_log, 0, manifest.heads});
  checkArray({"dt_bias", args.dt_bias, 0, width.gate});
  checkArray({"y", args.y, args.y_stride, width.value});
  checkBatchSlots(layer, {args.slots, size_t(args.batch)});
}

void Engine::checkBatchSlots(const LayerState &layer,
                             std::span<const int32_t> batch) {
  ++batches;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    checkSlot(slot);
    Slot &owner = slots[size_t(slot)];
    if (owner.lastBatch == batches)
      fail(SS_INVALID_ARGUMENT, "slot ", slot,
           " appears twice in the batch, expected every slot once");
    owner.lastBatch = batches;
    if (layer.decodedTokens[size_t(slot)] > owner.position)
      fail(SS_BUFFER_FULL, "layer '", layer.manifest().name,
           "' has decoded position ", owner.position, " of slot ", slot,
           " already, expected one token per step: call ss_end_step first");
  }
}

std::vector<int32_t>
Engine::dueSlots(const LayerState &layer,
                 std::span<const int32_t> batch) const {
  std::vector<int32_t> due;
  const LayerManifest &manifest = layer.manifest();
  if (manifest.denseForm)
    return due;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    int64_t next = slots[size_t(slot)].position + 1;
    // The request's own position decides, so that its bits do not depend on
    // when it joined.
    bool scheduled = next % manifest.buffer == manifest.phase;
    bool full = layer.count[slot] + 1 >= manifest.buffer;
    if (scheduled || full)
      due.push_back(slot);
  }
  return due;
}

void Engine::reserveRows(LayerState &layer, std::span<const int32_t> due) {
  // Compaction works in the state's own block: room for what is stored and for
  // the whole buffer. Taken before anything changes, so that running out of
  // memory leaves every state as it was.
  for (int32_t slot : due) {
    const int64_t pairs = layer.count[slot] + 1;
    const int64_t first = layer.firstState(slot);
    for (int64_t state = first; state < first + layer.heads(); ++state)
      if (!layer.isDense(state))
        layer.ensureRows(state, std::min<int64_t>(layer.rank[state] + pairs,
                                                  layer.manifest().rank));
  }
  noteAllocation(layer);
}

void Engine::launchDecode(LayerState &layer, const ss_decode_args &args) {
  const DecodeWidths width(layer.manifest());
  if (layer.manifest().denseForm)
    values.setPointer(Argument::Dense, layer.dense.data());
  else
    bindState(layer);
  values.setPointer(Argument::Slots, args.slots);
  auto input = [&](Argument data, Argument stride, const ss_input &rows,
                   int64_t floats) {
    values.setPointer(data, rows.data);
    values.setI64(stride, packedOr(rows.stride, floats));
  };
  input(Argument::Q, Argument::QStride, args.q, width.key);
  input(Argument::K, Argument::KStride, args.k, width.key);
  input(Argument::V, Argument::VStride, args.v, width.value);
  input(Argument::Gate, Argument::GateStride, args.gate, width.gate);
  input(Argument::Beta, Argument::BetaStride, args.beta, width.beta);
  values.setPointer(Argument::ALog, args.a_log);
  values.setPointer(Argument::DtBias, args.dt_bias);
  values.setPointer(Argument::Y, args.y);
  values.setI64(Argument::YStride, packedOr(args.y_stride, width.value));
  device.launch({*package, layer.manifest().decode, values,
                 int64_t(args.batch) * layer.heads()});
}

void Engine::decodeLayer(int32_t index, const ss_decode_args &args) {
  checkedLayer(index);
  LayerState &layer = layers[size_t(index)];
  checkDecode(layer, args);
  const std::span<const int32_t> batch(args.slots, size_t(args.batch));
  const std::vector<int32_t> due = dueSlots(layer, batch);
  {
    Stopwatch time(counters.decode_seconds);
    reserveRows(layer, due);
    launchDecode(layer, args);
    device.wait();
  }
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    layer.decodedTokens[size_t(slot)] = slots[size_t(slot)].position + 1;
    if (!layer.manifest().denseForm)
      ++layer.count[slot];
  }
  if (!due.empty())
    compactSlots(layer, due);
}

} // namespace sinkstate::runtime
