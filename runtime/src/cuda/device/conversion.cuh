// A caller's rows of other types: slots by a padding rule as the int32 that kernels
// take, f16 and bf16 as f32 (and f32 that lies at other addresses than they read), and
// outputs back. Compiled by NVRTC for the GPU; on the
// CPU the engine has the same rules for slots and places (engine/HostRowConverter.h),
// and the tests run all of it on the host.
#pragma once

#include "cuda/device/elements.cuh"

#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef long long int64_t;
#endif

namespace ss {

/// A bit of Schedule::faults, beside those of schedule.cuh: a slot of a caller's
/// rows that is none of the engine's, and no padding either.
constexpr int32_t kSlotUnknown = 4;

/// Values of the C API's ss_padding.
enum PaddingRule : int32_t { kNegativeIsPadding, kValueIsPadding, kUpToIsPadding };

/// The slots of a batch as the caller has them.
struct CallerSlots {
  const void *slots; // [batch]
  int64_t padding_value;
  int32_t wide;       // 1: int64_t, 0: int32_t
  int32_t padding;    // a PaddingRule
  int32_t batch;
  int32_t slot_count; // of the engine
};

SS_ON_BOTH_SIDES int64_t slot_given(const CallerSlots &rows, int64_t row) {
  return rows.wide ? static_cast<const int64_t *>(rows.slots)[row]
                   : static_cast<const int32_t *>(rows.slots)[row];
}

SS_ON_BOTH_SIDES bool is_padding(const CallerSlots &rows, int64_t slot) {
  if (rows.padding == kNegativeIsPadding)
    return slot < 0;
  return rows.padding == kValueIsPadding ? slot == rows.padding_value
                                         : slot <= rows.padding_value;
}

SS_ON_BOTH_SIDES bool is_known(const CallerSlots &rows, int64_t slot) {
  return slot >= 0 && slot < rows.slot_count;
}

/// The slot of a row as kernels take it: -1 for padding, and for what is unknown.
SS_ON_BOTH_SIDES int32_t slot_for_kernels(const CallerSlots &rows, int64_t slot) {
  return is_padding(rows, slot) || !is_known(rows, slot) ? -1 : int32_t(slot);
}

/// The rows of one array, where the caller has them and where kernels do.
struct ConvertedArray {
  void *caller;          // [batch, tokens, width]
  float *staged;         // [batch, tokens, width], packed
  int64_t stride;        // of the caller's rows, in elements
  int64_t token_stride;
  int64_t width;
  int32_t type;          // an ss_element_type
  int32_t by_eight;      // 1: of 16 bits, every eight of them at a multiple of 16 bytes
};

/// What a call's inputs become before its kernels.
constexpr int32_t kMostInputs = 5;
struct RowsToTake {
  CallerSlots slots;
  int32_t *slot_rows;    // [batch]; null: kernels have them
  int32_t *faults;       // [1]
  int32_t tokens, count; // of a row, of `inputs`
  ConvertedArray inputs[kMostInputs];
};

/// What becomes of its outputs after them.
struct RowsToGive {
  ConvertedArray y;
  int32_t batch, tokens;
};

/// Where a row of the caller's begins, in elements.
SS_ON_BOTH_SIDES int64_t caller_row(const ConvertedArray &array, int64_t row, int64_t token) {
  return row * array.stride + token * array.token_stride;
}

/// Elements that a warp converts at a time: part of a row.
constexpr int32_t kLanes = 32, kPartElements = 8 * kLanes;

SS_ON_BOTH_SIDES int64_t parts_of(const ConvertedArray &array) {
  return (array.width + kPartElements - 1) / kPartElements;
}

SS_ON_BOTH_SIDES int64_t parts_of_row(const RowsToTake &take) {
  int64_t parts = 0;
  for (int32_t i = 0; i < take.count; ++i)
    parts += parts_of(take.inputs[i]);
  return parts;
}

SS_ON_BOTH_SIDES int64_t part_count(const RowsToTake &take) {
  return int64_t(take.slots.batch) * take.tokens * parts_of_row(take);
}

SS_ON_BOTH_SIDES int64_t part_count(const RowsToGive &give) {
  return int64_t(give.batch) * give.tokens * parts_of(give.y);
}

/// Sixteen bytes: four floats, or eight elements of 16 bits, the lower half first.
struct alignas(16) FourWords {
  uint32_t words[4];
};

/// One access: a structure, or a uint4, would be written word by word.
SS_ON_BOTH_SIDES void store_words(void *to, const FourWords &words) {
#ifdef __CUDACC_RTC__
  __stwb(static_cast<uint4 *>(to),
         make_uint4(words.words[0], words.words[1], words.words[2], words.words[3]));
#else
  *static_cast<FourWords *>(to) = words;
#endif
}

SS_ON_BOTH_SIDES float widen(int32_t type, uint16_t bits) {
  return type == 1 ? from_f16(bits) : from_bf16(bits);
}

SS_ON_BOTH_SIDES uint16_t narrow(int32_t type, float value) {
  return type == 1 ? to_f16(value) : to_bf16(value);
}

SS_ON_BOTH_SIDES float caller_element(const ConvertedArray &array, int64_t place) {
  if (array.type == 0)
    return static_cast<const float *>(array.caller)[place];
  return widen(array.type, static_cast<const uint16_t *>(array.caller)[place]);
}

SS_ON_BOTH_SIDES void set_caller_element(const ConvertedArray &array, int64_t place,
                                         float value) {
  if (array.type == 0)
    static_cast<float *>(array.caller)[place] = value;
  else
    static_cast<uint16_t *>(array.caller)[place] = narrow(array.type, value);
}

/// Elements [begin, begin + kPartElements) of the row at `at` of the caller's, as far
/// as there are any, one lane's share. Rows of padding may lie anywhere: they are not
/// read, and zero.
SS_ON_BOTH_SIDES void take_elements(const ConvertedArray &array, int64_t at, float *to,
                                    int64_t begin, int32_t lane, bool padding) {
  if (array.by_eight) {
    const int64_t first = begin + 8 * lane;
    if (first >= array.width)
      return;
    FourWords low = {}, high = {};
    if (!padding) {
      const FourWords halves = *reinterpret_cast<const FourWords *>(
          static_cast<const uint16_t *>(array.caller) + at + first);
      for (int32_t i = 0; i < 4; ++i) {
        FourWords &four = i < 2 ? low : high;
        four.words[i % 2 * 2] = bits_of(widen(array.type, uint16_t(halves.words[i])));
        four.words[i % 2 * 2 + 1] = bits_of(widen(array.type, uint16_t(halves.words[i] >> 16)));
      }
    }
    store_words(to + first, low);
    store_words(to + first + 4, high);
    return;
  }
  for (int64_t i = begin + lane; i < begin + kPartElements && i < array.width; i += kLanes)
    to[i] = padding ? 0.0f : caller_element(array, at + i);
}

SS_ON_BOTH_SIDES void give_elements(const ConvertedArray &array, int64_t at, const float *from,
                                    int64_t begin, int32_t lane) {
  if (array.by_eight) {
    const int64_t first = begin + 8 * lane;
    if (first >= array.width)
      return;
    const FourWords low = reinterpret_cast<const FourWords *>(from + first)[0];
    const FourWords high = reinterpret_cast<const FourWords *>(from + first)[1];
    FourWords halves;
    for (int32_t i = 0; i < 4; ++i) {
      const FourWords &four = i < 2 ? low : high;
      const uint32_t lower = narrow(array.type, float_of(four.words[i % 2 * 2]));
      const uint32_t upper = narrow(array.type, float_of(four.words[i % 2 * 2 + 1]));
      halves.words[i] = lower | upper << 16;
    }
    store_words(static_cast<uint16_t *>(array.caller) + at + first, halves);
    return;
  }
  for (int64_t i = begin + lane; i < begin + kPartElements && i < array.width; i += kLanes)
    set_caller_element(array, at + i, from[i]);
}

/// One lane's share of a part.
SS_ON_BOTH_SIDES void take_part(const RowsToTake &take, int64_t parts_of_a_row, int64_t part,
                                int32_t lane) {
  const int64_t row_and_token = part / parts_of_a_row;
  const int64_t row = row_and_token / take.tokens, token = row_and_token % take.tokens;
  int64_t rest = part % parts_of_a_row;
  int32_t which = 0;
  for (; rest >= parts_of(take.inputs[which]); ++which)
    rest -= parts_of(take.inputs[which]);
  const ConvertedArray &array = take.inputs[which];
  const bool padding = slot_for_kernels(take.slots, slot_given(take.slots, row)) < 0;
  take_elements(array, caller_row(array, row, token), array.staged + row_and_token * array.width,
                rest * kPartElements, lane, padding);
}

SS_ON_BOTH_SIDES void note_unknown_slot(int32_t *faults) {
#ifdef __CUDACC_RTC__
  atomicOr(faults, kSlotUnknown);
#else
  *faults |= kSlotUnknown;
#endif
}

/// What thread `thread` of `threads`, whole warps of them, does of a call's inputs.
SS_ON_BOTH_SIDES void take_rows(const RowsToTake &take, int64_t thread, int64_t threads) {
  for (int64_t row = thread; take.slot_rows && row < take.slots.batch; row += threads) {
    const int64_t slot = slot_given(take.slots, row);
    if (!is_padding(take.slots, slot) && !is_known(take.slots, slot))
      note_unknown_slot(take.faults);
    take.slot_rows[row] = slot_for_kernels(take.slots, slot);
  }
  const int64_t parts_of_a_row = parts_of_row(take), parts = part_count(take);
  for (int64_t part = thread / kLanes; part < parts; part += threads / kLanes)
    take_part(take, parts_of_a_row, part, int32_t(thread % kLanes));
}

/// The same of its outputs.
SS_ON_BOTH_SIDES void give_rows(const RowsToGive &give, int64_t thread, int64_t threads) {
  const ConvertedArray &y = give.y;
  const int64_t parts_of_a_row = parts_of(y), parts = part_count(give);
  for (int64_t part = thread / kLanes; part < parts; part += threads / kLanes) {
    const int64_t row_and_token = part / parts_of_a_row;
    const int64_t at = caller_row(y, row_and_token / give.tokens, row_and_token % give.tokens);
    give_elements(y, at, y.staged + row_and_token * y.width,
                  part % parts_of_a_row * kPartElements, int32_t(thread % kLanes));
  }
}

} // namespace ss

#ifdef __CUDACC_RTC__

extern "C" __global__ void ss_take_rows(const __grid_constant__ ss::RowsToTake take) {
  ss::take_rows(take, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,
                int64_t(gridDim.x) * blockDim.x);
}

extern "C" __global__ void ss_give_rows(const __grid_constant__ ss::RowsToGive give) {
  ss::give_rows(give, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,
                int64_t(gridDim.x) * blockDim.x);
}

#endif
