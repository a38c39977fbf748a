//===- HostRowConverter.cpp - Conversion of rows on the CPU ---------------===//

#include "engine/HostRowConverter.h"

#include "capi/ElementTypes.h"

#include <algorithm>
#include <new>

namespace sinkstate::runtime {
namespace {

using numeric::ElementType;

static_assert(ss::kNegativeIsPadding == int(SS_PADDING_NEGATIVE) &&
              ss::kValueIsPadding == int(SS_PADDING_VALUE) &&
              ss::kUpToIsPadding == int(SS_PADDING_UP_TO));

void takeSlots(const ss::RowsToTake &rows) {
  for (int32_t row = 0; row < rows.slots.batch; ++row) {
    const int64_t slot = ss::slot_given(rows.slots, row);
    if (!ss::is_padding(rows.slots, slot) && !ss::is_known(rows.slots, slot))
      fail(SS_INVALID_ARGUMENT, "args.slots[", row, "] is ", slot,
           ", expected 0 to ", rows.slots.slot_count - 1,
           " or padding by args.padding");
    rows.slot_rows[row] = ss::slot_for_kernels(rows.slots, slot);
  }
}

/// Calls `body(row, type, caller's elements, staged elements)` for every row and
/// token.
template <typename Body>
void overRows(const ss::ConvertedArray &array, int32_t batch, int32_t tokens,
              const Body &body) {
  const ElementType type = checkedElementType("type", array.type);
  auto *elements = static_cast<std::byte *>(array.caller);
  float *staged = array.staged;
  for (int32_t row = 0; row < batch; ++row)
    for (int32_t token = 0; token < tokens; ++token, staged += array.width)
      body(row, type,
           elements + ss::caller_row(array, row, token) *
                          numeric::elementBytes(type),
           staged);
}

} // namespace

HostRowConverter::HostRowConverter(int64_t stagingBytes)
    : memory(static_cast<std::byte *>(::operator new(
          size_t(stagingBytes), std::align_val_t(kStagingAlignment)))) {}

void HostRowConverter::Free::operator()(std::byte *memory) const noexcept {
  ::operator delete(memory, std::align_val_t(kStagingAlignment));
}

void HostRowConverter::take(ss::RowsToTake rows, void *) const {
  takeSlots(rows);
  for (int32_t i = 0; i < rows.count; ++i) {
    const ss::ConvertedArray &array = rows.inputs[i];
    overRows(array, rows.slots.batch, rows.tokens,
             [&](int32_t row, ElementType type, const void *from, float *to) {
               // Rows of padding may lie anywhere: they are not read.
               if (rows.slot_rows[row] < 0)
                 std::fill_n(to, array.width, 0.0f);
               else
                 numeric::loadElements(type, to, from, array.width);
             });
  }
}

void HostRowConverter::give(const ss::RowsToGive &rows, void *) const {
  overRows(rows.y, rows.batch, rows.tokens,
           [&](int32_t, ElementType type, void *to, const float *from) {
             numeric::storeElements(type, to, from, rows.y.width);
           });
}

} // namespace sinkstate::runtime
