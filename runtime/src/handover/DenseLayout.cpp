//===- DenseLayout.cpp - Dense states in a caller's memory ----------------===//

#include "handover/DenseLayout.h"

#include "capi/ElementTypes.h"

#include <algorithm>
#include <array>

namespace sinkstate::runtime {

ss_dense_layout resolveLayout(const LayerManifest &layer,
                              const ss_dense_layout &given) {
  ss_dense_layout layout = given;
  (void)checkedElementType("layout.type", layout.type);
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
  withFormat(checkedElementType("layout.type", layout.type), [&](auto format) {
    using Format = decltype(format);
    const auto *from = static_cast<const typename Format::Bits *>(dense);
    overElements(layer, layout, place, head,
                 [&](int64_t v, int64_t k, int64_t offset) {
                   columns[k * layer.dv + v] = Format::widen(from[offset]);
                 });
  });
}

void writeDense(const LayerManifest &layer, const ss_dense_layout &layout,
                void *out, int64_t place, int64_t head, const float *state,
                int64_t vStride, int64_t kStride) {
  withFormat(checkedElementType("layout.type", layout.type), [&](auto format) {
    using Format = decltype(format);
    auto *to = static_cast<typename Format::Bits *>(out);
    overElements(layer, layout, place, head,
                 [&](int64_t v, int64_t k, int64_t offset) {
                   to[offset] =
                       Format::narrow(state[v * vStride + k * kStride]);
                 });
  });
}

} // namespace sinkstate::runtime
