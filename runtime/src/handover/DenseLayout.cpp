//===- DenseLayout.cpp - Dense states in a caller's memory ----------------===//

#include "handover/DenseLayout.h"

#include "capi/Failure.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace sinkstate::runtime {

ss_dense_layout resolveLayout(const LayerManifest &layer,
                              const ss_dense_layout &given) {
  ss_dense_layout layout = given;
  if (layout.type < SS_ELEMENT_F32 || layout.type > SS_ELEMENT_BF16)
    fail(SS_INVALID_ARGUMENT, "layout.type is ", layout.type,
         ", expected SS_ELEMENT_F32 (0), SS_ELEMENT_F16 (1) or "
         "SS_ELEMENT_BF16 (2)");
  if (layout.slot_stride == 0 && layout.head_stride == 0 &&
      layout.dv_stride == 0 && layout.dk_stride == 0) {
    layout.dk_stride = 1;
    layout.dv_stride = layer.dk;
    layout.head_stride = int64_t(layer.dv) * layer.dk;
    layout.slot_stride = layout.head_stride * layer.heads;
  }
  struct Axis {
    int64_t stride, size;
    const char *name;
  };
  std::array<Axis, 3> axes = {{{layout.dk_stride, layer.dk, "dk_stride"},
                               {layout.dv_stride, layer.dv, "dv_stride"},
                               {layout.head_stride, layer.heads,
                                "head_stride"}}};
  std::sort(axes.begin(), axes.end(),
            [](const Axis &a, const Axis &b) { return a.stride < b.stride; });
  int64_t covered = 1; // elements up to the end of the axes before
  for (const Axis &axis : axes) {
    if (axis.size == 1)
      continue;
    if (axis.stride < covered)
      fail(SS_INVALID_ARGUMENT, "layout.", axis.name, " is ", axis.stride,
           ", expected at least ", covered,
           " elements, so that elements do not overlap (or 0 in all strides)");
    covered += (axis.size - 1) * axis.stride;
  }
  if (layout.slot_stride < covered)
    fail(SS_INVALID_ARGUMENT, "layout.slot_stride is ", layout.slot_stride,
         ", expected at least ", covered, " elements, one state's extent");
  return layout;
}

namespace {

/// Calls `body(v, k, offset)` for every element of one H.
template <typename Body>
void overElements(const LayerManifest &layer, const ss_dense_layout &layout,
                  int64_t place, int64_t head, const Body &body) {
  const int64_t first = place * layout.slot_stride + head * layout.head_stride;
  for (int64_t k = 0; k < layer.dk; ++k)
    for (int64_t v = 0; v < layer.dv; ++v)
      body(v, k, first + v * layout.dv_stride + k * layout.dk_stride);
}

} // namespace

void readDense(const LayerManifest &layer, const ss_dense_layout &layout,
               const void *dense, int64_t place, int64_t head,
               float *columns) {
  auto read = [&](auto &&at) {
    overElements(layer, layout, place, head,
                 [&](int64_t v, int64_t k, int64_t offset) {
                   columns[k * layer.dv + v] = at(offset);
                 });
  };
  if (layout.type == SS_ELEMENT_F32)
    read([&](int64_t i) { return static_cast<const float *>(dense)[i]; });
  else if (layout.type == SS_ELEMENT_F16)
    read([&](int64_t i) {
      return fromF16(static_cast<const uint16_t *>(dense)[i]);
    });
  else
    read([&](int64_t i) {
      return fromBf16(static_cast<const uint16_t *>(dense)[i]);
    });
}

void writeDense(const LayerManifest &layer, const ss_dense_layout &layout,
                void *out, int64_t place, int64_t head, const float *state,
                int64_t vStride, int64_t kStride) {
  auto write = [&](auto *to, auto &&convert) {
    overElements(layer, layout, place, head,
                 [&](int64_t v, int64_t k, int64_t offset) {
                   to[offset] = convert(state[v * vStride + k * kStride]);
                 });
  };
  if (layout.type == SS_ELEMENT_F32)
    write(static_cast<float *>(out), [](float x) { return x; });
  else if (layout.type == SS_ELEMENT_F16)
    write(static_cast<uint16_t *>(out), toF16);
  else
    write(static_cast<uint16_t *>(out), toBf16);
}

float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

uint16_t toBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float fromF16(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = float(fraction) * 0x1p-24f; // subnormal, exact
  return sign ? -small : small;
}

uint16_t toF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = uint16_t(bits >> 16 & 0x8000);
  if (std::isnan(value))
    return uint16_t(sign | 0x7e00);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) // rounds to infinity
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x1p-14f) // subnormal: a multiple of 2^-24
    return uint16_t(sign | uint16_t(std::nearbyint(magnitude * 0x1p24f)));
  const uint32_t rounded =
      (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1) - (112u << 23);
  return uint16_t(sign | uint16_t(rounded >> 13));
}

} // namespace sinkstate::runtime
