// Frozen rows on their way to the host and back: which slots changed, what the
// download reads, and how results are taken over. Compiled by NVRTC for the GPU
// and by the host's compiler for the tests; nothing here is mathematics of a
// state.
//
// Every slot has an *epoch* in every layer with a frozen part, a number that is
// advanced in the order of the decode stream whenever the slot's rows are
// others: after the compactions of a step (ss_note_compactions) and when the
// slot gets new contents (ss_note_slot). A result is taken over (ss_swap_in) in
// the same order, and only where the epoch is the one that was read.
//
// That alone keeps stale and torn data out. The download reads on a stream of
// its own, so that a compaction may change rows under it. But whatever changed
// them while they were read, or later, had begun before the result could be
// published, and a launch of ss_swap_in that sees the result comes after it in
// the order of the decode stream, and therefore after the epoch that it
// advanced. The download compares epochs before and after only to spare the
// host the SVD of rows that changed under it.
#pragma once

#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned char uint8_t;
#define SS_BOTH_SIDES __device__ __forceinline__
#else
#include <cstdint>
#include <cstring>
#define SS_BOTH_SIDES inline
#endif

namespace ss {

/// One layer with a frozen part. Arrays of the host are mapped, pinned memory.
struct FrozenLayer {
  uint8_t *rows;             // [total_rows, row_bytes]
  float *weights;            // [total_rows]
  const int64_t *row_base;   // [slots * heads]
  int32_t *rank;             // [slots * heads]
  int32_t *status;           // [slots * heads]
  const int32_t *work;       // [slots * heads], what was due; heads of a slot one after another
  const int32_t *work_count; // [1]
  uint64_t *epoch;           // [slots]
  int32_t *since;            // [slots], 2 * compactions since the last result, and
                             // 1 where one is missing
  uint64_t *notes;           // [slots], of the host: see note_change
  uint64_t *changes;         // [1], of the host: grows when notes have changed
  uint64_t *changed;         // [1], the same number on the device
  int64_t total_rows;        // of them, those that may be read
  int32_t heads, active, row_bytes;
  int32_t every;   // compactions between two SVDs; 0: only where rows run out
  int32_t crowded; // above so many components the next compaction may drop some
  int32_t most;    // components of a state at most
  int32_t first_row, unused; // a state with a smaller base has no rows
};

/// All layers of an engine that have a frozen part.
struct Frozen {
  const FrozenLayer *layers;
  const int64_t *position; // [slots]
  int32_t layer_count, slots;
};

/// Bits of a note, below the epoch.
enum Note : uint64_t {
  kNoteDue = 1,       ///< the frozen part is to be consolidated
  kNoteCompacted = 2, ///< by a compaction, not by new contents of the slot
};
constexpr int kNoteBits = 2;

/// What was read of one state.
struct GatheredState {
  uint64_t before, after; ///< epochs of its slot
  int64_t position;       ///< of the slot
  int64_t offset;         ///< of its weights in Gather::data, then its rows
  int32_t rank;           ///< 0: nothing to consolidate, and nothing read
  int32_t unused;
};

/// A download: blocks of ss_gather are states, heads of a slot together.
struct Gather {
  FrozenLayer layer;
  const int64_t *position;
  const int32_t *slots;  // [blocks / heads]
  GatheredState *states; // [blocks]
  uint8_t *data;         // [room]
  uint64_t *used;        // [1], bytes of data; 0 before
  int64_t room;
};

/// A result for one state.
struct alignas(16) Result {
  uint64_t sequence; ///< of the publication it belongs to
  uint64_t epoch;    ///< of the rows it was made from
  int64_t offset;    ///< of its weights in Mailbox::data, then its rows
  int32_t layer, slot, head;
  int32_t rank;   ///< components now; negative: the rows stay
  int32_t status; ///< bits to set
  int32_t unused[3];
};
static_assert(sizeof(Result) == 64 && sizeof(GatheredState) == 40 && sizeof(FrozenLayer) == 136,
              "host and device lay them out alike");

/// What the host has published for the decode stream. The host changes results
/// and data only while `ready` is 0 and every result has its answer. A block
/// that has read an older `ready` finds no result of that number without an
/// answer: numbers grow, and each result carries its own.
struct Mailbox {
  const uint64_t *ready; // [1], number of the publication; 0: there is none
  const uint64_t *count; // [1], results
  const Result *results;
  const uint8_t *data;
  uint64_t *answered;   // per result: number of the publication, once answered
  uint64_t *answers;    // the same on the host, with kLanded
  int64_t *answered_at; // of the host: position of the slot then
};

constexpr int kMailboxes = 2;
struct Mailboxes {
  Mailbox box[kMailboxes];
};

/// Answers are 2 * number of the publication, and this bit.
constexpr uint64_t kLanded = 1;

/// Stores a word that another processor waits for, after everything before.
SS_BOTH_SIDES void publish(uint64_t *word, uint64_t value) {
#ifdef __CUDACC_RTC__
  __threadfence_system();
  *(volatile uint64_t *)(word) = value;
#else
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

/// Loads such a word, before everything that follows.
SS_BOTH_SIDES uint64_t observe(const uint64_t *word) {
#ifdef __CUDACC_RTC__
  const uint64_t value = *(const volatile uint64_t *)(word);
  __threadfence();
  return value;
#else
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

/// `bytes` rounded up to what the widest copy moves.
SS_BOTH_SIDES int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }

/// Bytes of a state's weights and rows in Gather::data and Mailbox::data.
SS_BOTH_SIDES int64_t packed_bytes(int64_t rank, int64_t row_bytes) {
  return aligned(rank * 4) + aligned(rank * row_bytes);
}

#ifdef __CUDACC_RTC__
/// Past L1, which does not see what other multiprocessors write.
template <typename T>
__device__ __forceinline__ void copy_units(uint8_t *to, const uint8_t *from, int64_t bytes,
                                           int32_t thread, int32_t threads) {
  for (int64_t i = thread; i < bytes / int64_t(sizeof(T)); i += threads)
    ((T *)to)[i] = __ldcg((const T *)from + i);
}
#endif

/// One thread's part of a copy. Rows of 8 bits may begin anywhere.
SS_BOTH_SIDES void copy_part(uint8_t *to, const uint8_t *from, int64_t bytes, int32_t thread,
                             int32_t threads) {
#ifdef __CUDACC_RTC__
  const uint64_t bits = uint64_t(to) | uint64_t(from) | uint64_t(bytes);
  if (bits % 16 == 0)
    copy_units<int4>(to, from, bytes, thread, threads);
  else if (bits % 4 == 0)
    copy_units<int>(to, from, bytes, thread, threads);
  else if (bits % 2 == 0)
    copy_units<short>(to, from, bytes, thread, threads);
  else
    copy_units<char>(to, from, bytes, thread, threads);
#else
  (void)threads;
  if (thread == 0 && bytes > 0)
    std::memcpy(to, from, size_t(bytes));
#endif
}

/// The rows of a slot are others now. The host finds epoch << kNoteBits | bits
/// in its notes.
SS_BOTH_SIDES void note_change(const FrozenLayer &layer, int32_t slot, uint64_t bits) {
  const uint64_t epoch = layer.epoch[slot] + 1;
  publish(&layer.epoch[slot], epoch);
  publish(&layer.notes[slot], epoch << kNoteBits | bits);
}

/// Whether entry i of the work list is the first of its slot.
SS_BOTH_SIDES bool is_first_of_slot(const FrozenLayer &layer, int32_t i) {
  return i == 0 || layer.work[i] / layer.heads != layer.work[i - 1] / layer.heads;
}

/// A slot was compacted. Once it is due, it is so at every compaction until a
/// result has landed: one that was dropped is made anew.
SS_BOTH_SIDES void note_compaction(const FrozenLayer &layer, int32_t slot) {
  const int32_t compactions = layer.since[slot] / 2 + 1;
  const bool missing = layer.since[slot] % 2 != 0;
  bool frozen = false, crowded = false;
  for (int32_t head = 0; head < layer.heads; ++head) {
    const int32_t rank = layer.rank[int64_t(slot) * layer.heads + head];
    frozen |= rank > layer.active;
    crowded |= rank > layer.crowded;
  }
  const bool turn = layer.every > 0 && compactions % layer.every == 0;
  const bool due = frozen && (missing || turn || crowded);
  layer.since[slot] = 2 * compactions + (missing || due);
  note_change(layer, slot, kNoteCompacted | (due ? uint64_t(kNoteDue) : 0));
}

/// A slot has new contents.
SS_BOTH_SIDES void note_slot(const FrozenLayer &layer, int32_t slot) {
  layer.since[slot] = 0;
  note_change(layer, slot, 0);
}

/// After the notes of a layer.
SS_BOTH_SIDES void note_layer(const FrozenLayer &layer) {
  publish(layer.changes, ++*layer.changed);
}

/// Where the rows of a state are, and room for them; by one thread. Rank and
/// base may be of different epochs here, so that they are kept in bounds.
SS_BOTH_SIDES GatheredState gather_begin(const Gather &gather, int32_t block,
                                         int64_t &base) {
  const FrozenLayer &layer = gather.layer;
  const int32_t slot = gather.slots[block / layer.heads];
  const int64_t state = int64_t(slot) * layer.heads + block % layer.heads;
  GatheredState found = {};
  found.before = observe(&layer.epoch[slot]);
  found.position = *(const volatile int64_t *)(&gather.position[slot]);
  found.rank = *(const volatile int32_t *)(&layer.rank[state]);
  base = *(const volatile int64_t *)(&layer.row_base[state]);
  if (found.rank <= layer.active || found.rank > layer.most ||
      base < layer.first_row ||
      base > layer.total_rows - found.rank) {
    found.rank = 0;
    base = 0; // no address is made of what was no place
  }
  const uint64_t bytes = uint64_t(packed_bytes(found.rank, layer.row_bytes));
#ifdef __CUDACC_RTC__
  found.offset = int64_t(atomicAdd(gather.used, bytes));
#else
  found.offset = int64_t(*gather.used);
  *gather.used += bytes;
#endif
  return found;
}

SS_BOTH_SIDES void gather_copy(const Gather &gather, const GatheredState &state, int64_t base,
                               int32_t thread, int32_t threads) {
  const FrozenLayer &layer = gather.layer;
  const int64_t weight_bytes = int64_t(state.rank) * 4;
  uint8_t *const to = gather.data + state.offset;
  copy_part(to, (const uint8_t *)(layer.weights + base), weight_bytes, thread, threads);
  copy_part(to + aligned(weight_bytes), layer.rows + base * layer.row_bytes,
            int64_t(state.rank) * layer.row_bytes, thread, threads);
}

/// After the copies of all threads; by one.
SS_BOTH_SIDES void gather_end(const Gather &gather, int32_t block, GatheredState state) {
  state.after = observe(&gather.layer.epoch[gather.slots[block / gather.layer.heads]]);
  gather.states[block] = state;
}

/// A result as the host has published it, past L1.
SS_BOTH_SIDES Result load_result(const Mailbox &box, int64_t i) {
  Result result;
#ifdef __CUDACC_RTC__
  for (int unit = 0; unit < int(sizeof(Result) / sizeof(int4)); ++unit)
    ((int4 *)&result)[unit] = __ldcg((const int4 *)&box.results[i] + unit);
#else
  result = box.results[i];
#endif
  return result;
}

/// Whether a result belongs to this publication and has no answer.
SS_BOTH_SIDES bool is_open(const Mailbox &box, uint64_t sequence, int64_t i,
                           const Result &result) {
  return result.sequence == sequence && box.answered[i] != sequence;
}

/// One thread's part of taking a result over. True: it is as fresh as the rows
/// it replaces.
SS_BOTH_SIDES bool swap_rows(const Frozen &frozen, const Mailbox &box, const Result &result,
                             int32_t thread, int32_t threads) {
  const FrozenLayer &layer = frozen.layers[result.layer];
  if (layer.epoch[result.slot] != result.epoch)
    return false;
  if (result.rank <= 0)
    return true;
  const int64_t base = layer.row_base[int64_t(result.slot) * layer.heads + result.head];
  const int64_t weight_bytes = int64_t(result.rank) * 4;
  const uint8_t *const from = box.data + result.offset;
  copy_part((uint8_t *)(layer.weights + base), from, weight_bytes, thread, threads);
  copy_part(layer.rows + base * layer.row_bytes, from + aligned(weight_bytes),
            int64_t(result.rank) * layer.row_bytes, thread, threads);
  return true;
}

/// After the copies of all threads; by one.
SS_BOTH_SIDES void answer(const Frozen &frozen, const Mailbox &box, int64_t i,
                          const Result &result, bool landed) {
  const FrozenLayer &layer = frozen.layers[result.layer];
  const int64_t state = int64_t(result.slot) * layer.heads + result.head;
  if (landed) {
    layer.status[state] |= result.status;
    if (result.rank >= 0)
      layer.rank[state] = result.rank;
    layer.since[result.slot] = 0;
  }
  box.answered[i] = result.sequence;
  box.answered_at[i] = frozen.position[result.slot];
  publish(&box.answers[i], 2 * result.sequence + (landed ? kLanded : 0));
}

} // namespace ss

#ifdef __CUDACC_RTC__

/// A block per layer, after the compactions of a step.
extern "C" __global__ void ss_note_compactions(ss::Frozen frozen) {
  const ss::FrozenLayer layer = frozen.layers[blockIdx.x];
  const int32_t count = *layer.work_count;
  for (int32_t i = threadIdx.x; i < count; i += blockDim.x)
    if (ss::is_first_of_slot(layer, i))
      ss::note_compaction(layer, layer.work[i] / layer.heads);
  __syncthreads();
  if (threadIdx.x == 0 && count > 0)
    ss::note_layer(layer);
}

/// A block per layer, when a slot gets new contents.
extern "C" __global__ void ss_note_slot(ss::Frozen frozen, int32_t slot) {
  if (threadIdx.x != 0)
    return;
  const ss::FrozenLayer layer = frozen.layers[blockIdx.x];
  ss::note_slot(layer, slot);
  ss::note_layer(layer);
}

/// A block per state.
extern "C" __global__ void ss_gather(ss::Gather gather) {
  __shared__ ss::GatheredState state;
  __shared__ int64_t base;
  if (threadIdx.x == 0)
    state = ss::gather_begin(gather, blockIdx.x, base);
  __syncthreads();
  ss::gather_copy(gather, state, base, threadIdx.x, blockDim.x);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    ss::gather_end(gather, blockIdx.x, state);
}

/// Any number of blocks, in the order of the decode stream. A result that is
/// published while it runs is taken over by some later launch.
extern "C" __global__ void ss_swap_in(ss::Frozen frozen, ss::Mailboxes mailboxes) {
  __shared__ uint64_t sequence, count;
  for (int32_t b = 0; b < ss::kMailboxes; ++b) {
    const ss::Mailbox &box = mailboxes.box[b];
    if (threadIdx.x == 0) {
      sequence = ss::observe(box.ready);
      count = sequence == 0 ? 0 : *(const volatile uint64_t *)(box.count);
    }
    __syncthreads();
    for (uint64_t i = blockIdx.x; i < count; i += gridDim.x) {
      const ss::Result result = ss::load_result(box, int64_t(i));
      const bool open = ss::is_open(box, sequence, int64_t(i), result);
      __syncthreads(); // before the answer that closes it
      if (!open)
        continue;
      const bool landed = ss::swap_rows(frozen, box, result, threadIdx.x, blockDim.x);
      __syncthreads();
      if (threadIdx.x == 0)
        ss::answer(frozen, box, int64_t(i), result, landed);
    }
    __syncthreads(); // before the next box's numbers
  }
}

#endif
