//===- DecodeArguments.cpp - From ss_decode_args to kernel arguments ------===//

#include "engine/DecodeArguments.h"

#include "capi/Failure.h"

#include <numeric>

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

void checkDecodeArguments(const LayerManifest &manifest,
                          const ss_decode_args &args) {
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
}

bool beginAtUnits(const void *data, int64_t stride, int64_t headElements,
                  int64_t unit) {
  const int64_t floats = std::gcd(headElements, unit);
  return reinterpret_cast<uintptr_t>(data) %
                 (uintptr_t(floats) * sizeof(float)) == 0 &&
         stride % floats == 0;
}

void checkRowAddresses(const LayerManifest &layer, const ss_decode_args &args) {
  auto check = [&](const char *name, const void *data, int64_t stride,
                   int64_t headElements) {
    if (!beginAtUnits(data, args.batch > 1 ? stride : 0, headElements,
                      kVectorFloats))
      fail(SS_INVALID_ARGUMENT, "args.", name,
           " has rows that do not begin at multiples of ",
           std::gcd(headElements, kVectorFloats) * int64_t(sizeof(float)),
           " bytes (stride ", stride, "), expected what a GPU reads at once: "
           "move them, or create the engine with options.max_batch to have "
           "them copied");
  };
  check("q", args.q.data, args.q.stride, layer.dk);
  check("k", args.k.data, args.k.stride, layer.dk);
  check("v", args.v.data, args.v.stride, layer.dv);
  check("gate", args.gate.data, args.gate.stride,
        layer.channelDecay ? layer.dk : 1);
  if (layer.hasBeta)
    check("beta", args.beta.data, args.beta.stride, 1);
  check("y", args.y, args.y_stride, layer.dv);
}

void bindDecodeArguments(const LayerManifest &layer,
                         const ss_decode_args &args, ArgumentValues &values) {
  const DecodeWidths width(layer);
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
  values.setPointer(Argument::Order, nullptr);
  values.setI32(Argument::Ordered, 0);
}

} // namespace sinkstate::runtime
