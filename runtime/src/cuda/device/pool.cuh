// Rows of states by capacity class, handed out on the device: a pool is an
// address range of equal chunks, each of which belongs to one class while any
// of its blocks is in use. One step asks for all its blocks first and then
// provides them all, so that nothing here waits or retries. Which address a
// state gets may differ from run to run; what it holds there does not.
// Compiled by NVRTC for the GPU and by the host's compiler for the tests.
#pragma once

#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
#define SS_BOTH_SIDES __device__ __forceinline__
#else
#include <cstdint>
#ifndef SS_BOTH_SIDES
#define SS_BOTH_SIDES inline
#endif
#endif

namespace ss {

constexpr int32_t kMostClasses = 96;
constexpr int32_t kMaskWords = 8;
/// Blocks of a chunk at most, one bit each.
constexpr int32_t kMostBlocks = 32 * kMaskWords;
/// Rows in front of the chunks. States without a block have them for a base:
/// what is written there is nobody's.
constexpr int32_t kScrapRows = 1;
constexpr int32_t kNoBlock = -1;
constexpr int32_t kNoRequest = -1;
/// Steps behind the current one whose requests are foreseen: one may be under way
/// when the host reads of them.
constexpr int32_t kForeseenSteps = 2;

/// In RowPool::limit: memory is short, and states keep the rows that they fill
/// alone, apart from their compactions.
constexpr int64_t kSqueezed = int64_t(1) << 31;

/// What a request is for.
enum RowPurpose : int32_t {
  kResize = 0, ///< another block for the rows that a state has
  kGoDense = 1, ///< a block for its matrix, beside the one it has
  kGoBack = 2,  ///< a block for its factors, beside that of its matrix
  kDenied = 3,  ///< another block, which there was not
  kSettled = 4  ///< nothing any more
};

struct RowRequest {
  int32_t layer, state, size_class;
  int32_t ticket; // number among the step's requests for this class
  int32_t purpose;
  int32_t before; // a status bit to put back; see rows.cuh
};

/// What the host reads without waiting. Written once per step.
struct PoolReport {
  int64_t step;         // provisions so far
  int64_t used_rows;    // in blocks that are taken
  int64_t denied;       // requests without a block, since the engine was made
  int64_t live_sum;     // of RowPool::live over the steps
  int64_t chunk_sum;    // of the chunks that were allowed, over the steps
  int64_t limit;        // RowPool::limit as this step saw it
  int32_t used_chunks;  // with at least one block taken
  int32_t top;          // one more than the last of them
  int32_t fresh;        // chunks that got a class in this step
  int32_t missing;      // chunks that this step would have needed
  int32_t coming;       // more than are in use, for what the next kForeseenSteps steps
                        // ask; -1: nobody has looked
};

struct RowPool {
  // Set once.
  char *rows;
  float *weights;
  int64_t row_bytes;
  int32_t chunk_rows, chunk_count, class_count, most_requests;
  int32_t capacity[kMostClasses]; // rows of a block, ascending
  int32_t blocks[kMostClasses];   // in a chunk
  const int32_t *class_of;        // [rows of the largest class + 1]
  int32_t *chunk_class;           // [chunks]; kNoBlock: free
  uint32_t *free_blocks;          // [chunks, kMaskWords]
  int32_t *leaving;               // [chunks]; 1: its states are to move elsewhere
  RowRequest *requests;           // [most_requests]
  int32_t *granted;               // [most_requests] by class, then ticket
  PoolReport *report;             // host memory
  // Host memory: the chunks that may be handed out (31 bits), kSqueezed, and in
  // the upper half a number that changes whenever the host changes it.
  const volatile int64_t *limit;
  // Requests that are being made.
  int32_t asked[kMostClasses];
  int32_t request_count;
  // Requests that were answered.
  int32_t first_grant[kMostClasses];
  int32_t grant_count;
  int64_t step, denied, live_sum, chunk_sum;
  int64_t live; // bytes of its states by the formula, as last noted
  int32_t enough[kMostClasses]; // chunks that would do for the blocks in use
  int32_t top;   // one more than the last chunk with a class
  int32_t squeezed; // 1: kSqueezed, as the last step saw it
  int32_t bound; // the limit that the last step saw: blocks beyond it are to move
  // What steps to come will ask, until the next provision has counted it.
  int32_t coming[kMostClasses];
  int32_t foreseen; // 1: somebody has looked
};

//===-- Counters that threads share --------------------------------------===//

#ifdef __CUDACC_RTC__
SS_BOTH_SIDES int32_t add_shared(int32_t *to, int32_t n) { return atomicAdd(to, n); }
SS_BOTH_SIDES void add_shared(int64_t *to, int64_t n) {
  atomicAdd(reinterpret_cast<unsigned long long *>(to), (unsigned long long)(n));
}
SS_BOTH_SIDES void max_shared(int32_t *to, int32_t n) { atomicMax(to, n); }
SS_BOTH_SIDES uint32_t or_shared(uint32_t *to, uint32_t bits) { return atomicOr(to, bits); }
SS_BOTH_SIDES int64_t exchange_shared(int64_t *to, int64_t n) {
  return int64_t(atomicExch(reinterpret_cast<unsigned long long *>(to), (unsigned long long)(n)));
}
SS_BOTH_SIDES int32_t bits_set(uint32_t word) { return __popc(word); }
SS_BOTH_SIDES int32_t lowest_bit(uint32_t word) { return __ffs(int(word)) - 1; }
/// Of a whole warp; on the host of one lane.
SS_BOTH_SIDES bool any_lane(bool mine) { return __any_sync(0xffffffffu, mine); }
#else
SS_BOTH_SIDES int32_t add_shared(int32_t *to, int32_t n) {
  const int32_t before = *to;
  *to += n;
  return before;
}
SS_BOTH_SIDES void add_shared(int64_t *to, int64_t n) { *to += n; }
SS_BOTH_SIDES void max_shared(int32_t *to, int32_t n) { *to = *to < n ? n : *to; }
SS_BOTH_SIDES uint32_t or_shared(uint32_t *to, uint32_t bits) {
  const uint32_t before = *to;
  *to |= bits;
  return before;
}
SS_BOTH_SIDES int64_t exchange_shared(int64_t *to, int64_t n) {
  const int64_t before = *to;
  *to = n;
  return before;
}
SS_BOTH_SIDES int32_t bits_set(uint32_t word) { return __builtin_popcount(word); }
SS_BOTH_SIDES int32_t lowest_bit(uint32_t word) { return __builtin_ctz(word); }
SS_BOTH_SIDES bool any_lane(bool mine) { return mine; }
#endif

//===-- Blocks -----------------------------------------------------------===//

SS_BOTH_SIDES int64_t block_base(const RowPool &pool, int32_t block, int32_t size_class) {
  return kScrapRows + int64_t(block / kMostBlocks) * pool.chunk_rows +
         block % kMostBlocks * pool.capacity[size_class];
}

SS_BOTH_SIDES int32_t chunk_at(const RowPool &pool, int64_t base) {
  return int32_t((base - kScrapRows) / pool.chunk_rows);
}

/// Gives the block at `base` back. It is handed out again by a later step.
SS_BOTH_SIDES void free_block(RowPool &pool, int64_t base) {
  const int32_t chunk = chunk_at(pool, base);
  const int32_t rows = int32_t((base - kScrapRows) % pool.chunk_rows);
  const int32_t index = rows / pool.capacity[pool.chunk_class[chunk]];
  or_shared(pool.free_blocks + int64_t(chunk) * kMaskWords + index / 32, 1u << index % 32);
}

/// Asks for a block of `rows` rows; the number of the request, or kNoRequest
/// where there is no room for it.
SS_BOTH_SIDES int32_t ask_block(RowPool &pool, int32_t rows, RowRequest request) {
  const int32_t place = add_shared(&pool.request_count, 1);
  if (place >= pool.most_requests)
    return kNoRequest;
  request.size_class = pool.class_of[rows];
  request.ticket = add_shared(&pool.asked[request.size_class], 1);
  pool.requests[place] = request;
  return place;
}

/// The block that answers a request, or kNoBlock.
SS_BOTH_SIDES int32_t granted_block(const RowPool &pool, const RowRequest &request) {
  return pool.granted[pool.first_grant[request.size_class] + request.ticket];
}

//===-- Provision: one block of threads for a whole pool -----------------===//
//
// Phases, with a barrier between any two of them. Each is called by every
// thread: `thread` of `threads`.

constexpr int32_t kTakenSums = 8;

struct Provision {
  // By class.
  int32_t asked[kMostClasses], given[kMostClasses], first_grant[kMostClasses];
  int32_t blocks[kMostClasses], first_chunk[kMostClasses];
  int32_t chunks[kMostClasses];
  /// Sums of some threads each: lanes of a warp seldom meet at one.
  int32_t taken_blocks[kTakenSums][kMostClasses];
  int32_t free_blocks[kTakenSums][kMostClasses]; ///< of chunks that may be used
  int32_t coming[kMostClasses];
  int64_t seen;
  int32_t limit, wanted, taken, used, top, coming_chunks;
  int32_t scanned; // chunks that are mapped, or still in use
  /// Likewise. 64 bits would be added by comparing and swapping, one thread of all
  /// at a time.
  int32_t used_rows[kTakenSums];
};

/// The chunks that a value of RowPool::limit allows.
SS_BOTH_SIDES int32_t chunks_of(int64_t limit) { return int32_t(limit & 0x7fffffff); }

/// A thread per class, and one for the limit, which is far away.
SS_BOTH_SIDES void load_provision(RowPool &pool, Provision &p, int32_t thread, int32_t threads) {
  for (int32_t c = thread; c < pool.class_count; c += threads) {
    p.asked[c] = pool.asked[c];
    p.blocks[c] = pool.blocks[c];
    p.given[c] = p.chunks[c] = 0;
    for (int32_t i = 0; i < kTakenSums; ++i)
      p.taken_blocks[i][c] = p.free_blocks[i][c] = 0;
    p.coming[c] = pool.coming[c];
    pool.asked[c] = pool.coming[c] = 0;
  }
  if (thread == threads - 1)
    p.seen = *pool.limit;
}

SS_BOTH_SIDES void begin_provision(RowPool &pool, Provision &p) {
  p.limit = chunks_of(p.seen) < pool.chunk_count ? chunks_of(p.seen) : pool.chunk_count;
  pool.bound = p.limit;
  pool.squeezed = (p.seen & kSqueezed) != 0;
  p.scanned = pool.top < p.limit ? p.limit : pool.top;
  p.wanted = p.taken = p.used = p.top = p.coming_chunks = 0;
  for (int32_t i = 0; i < kTakenSums; ++i)
    p.used_rows[i] = 0;
  int32_t all = 0;
  for (int32_t c = 0; c < pool.class_count; ++c) {
    p.first_grant[c] = all;
    all += p.asked[c];
  }
  pool.grant_count = pool.request_count < pool.most_requests ? pool.request_count
                                                             : pool.most_requests;
  pool.request_count = 0;
}

SS_BOTH_SIDES void clear_grants(RowPool &pool, Provision &p, int32_t thread, int32_t threads) {
  for (int32_t c = thread; c < pool.class_count; c += threads)
    pool.first_grant[c] = p.first_grant[c];
  for (int32_t i = thread; i < pool.grant_count; i += threads)
    pool.granted[i] = kNoBlock;
}

/// The words of a chunk's free blocks, all at once: one after the other each would
/// wait for memory.
SS_BOTH_SIDES void load_words(const RowPool &pool, int32_t chunk, uint32_t (&words)[kMaskWords]) {
  const uint32_t *from = pool.free_blocks + int64_t(chunk) * kMaskWords;
#ifdef __CUDACC_RTC__
  static_assert(kMaskWords == 8, "two loads of four words");
  const uint4 low = *reinterpret_cast<const uint4 *>(from);
  const uint4 high = *reinterpret_cast<const uint4 *>(from + 4);
  words[0] = low.x, words[1] = low.y, words[2] = low.z, words[3] = low.w;
  words[4] = high.x, words[5] = high.y, words[6] = high.z, words[7] = high.w;
#else
  for (int32_t w = 0; w < kMaskWords; ++w)
    words[w] = from[w];
#endif
}

/// Answers tickets `first` and following of a class with free blocks of a
/// chunk, lowest first; returns how many.
SS_BOTH_SIDES int32_t serve(RowPool &pool, Provision &p, int32_t size_class, int32_t chunk,
                            int32_t first) {
  uint32_t words[kMaskWords];
  load_words(pool, chunk, words);
  const int32_t wanted = p.asked[size_class] - first;
  int32_t *granted = pool.granted + p.first_grant[size_class] + first;
  uint32_t *to = pool.free_blocks + int64_t(chunk) * kMaskWords;
  int32_t served = 0;
#ifdef __CUDACC_RTC__
#pragma unroll
#endif
  for (int32_t w = 0; w < kMaskWords; ++w) {
    uint32_t word = words[w];
    if (word == 0 || served >= wanted)
      continue;
    for (; word != 0 && served < wanted; ++served) {
      granted[served] = chunk * kMostBlocks + w * 32 + lowest_bit(word);
      word &= word - 1;
    }
    to[w] = word;
  }
  return served;
}

SS_BOTH_SIDES int32_t free_in(const RowPool &pool, int32_t chunk) {
  uint32_t words[kMaskWords];
  load_words(pool, chunk, words);
  int32_t free = 0;
  for (int32_t w = 0; w < kMaskWords; ++w)
    free += bits_set(words[w]);
  return free;
}

/// What a phase has to know of a chunk.
struct ChunkView {
  int32_t size_class, leaving, free;
};

/// Calls `body(chunk, view)` for the chunks of a thread, in their order. Several
/// are looked at together: one after the other they would take as long each. In a
/// phase a chunk is its thread's alone.
template <typename Body>
SS_BOTH_SIDES void with_chunks(const RowPool &pool, const Provision &p, int32_t thread,
                               int32_t threads, const Body &body) {
  constexpr int32_t kAtOnce = 4;
  const int32_t end = p.scanned;
  for (int32_t first = thread; first < end; first += kAtOnce * threads) {
    ChunkView views[kAtOnce];
#ifdef __CUDACC_RTC__
#pragma unroll
#endif
    for (int32_t i = 0; i < kAtOnce; ++i)
      if (const int32_t chunk = first + i * threads; chunk < end)
        views[i] = {pool.chunk_class[chunk], pool.leaving[chunk], free_in(pool, chunk)};
#ifdef __CUDACC_RTC__
#pragma unroll
#endif
    for (int32_t i = 0; i < kAtOnce; ++i)
      if (const int32_t chunk = first + i * threads; chunk < end)
        body(chunk, views[i]);
  }
}

/// Returns how many requests the chunk has served.
SS_BOTH_SIDES int32_t serve_chunk(RowPool &pool, Provision &p, int32_t chunk,
                                  const ChunkView &view) {
  const int32_t c = view.size_class;
  if (chunk >= p.limit || view.free == 0 || p.given[c] >= p.asked[c])
    return 0;
  return serve(pool, p, c, chunk, add_shared(&p.given[c], view.free));
}

/// Free blocks of chunks that have a class. What a class has beyond the chunks
/// that would do is not used, and left by its states: holes come together.
SS_BOTH_SIDES void serve_partial(RowPool &pool, Provision &p, int32_t thread, int32_t threads) {
  with_chunks(pool, p, thread, threads, [&](int32_t chunk, const ChunkView &view) {
    const int32_t c = view.size_class;
    if (c == kNoBlock)
      return;
    const bool leaving = add_shared(&p.chunks[c], 1) >= pool.enough[c];
    pool.leaving[chunk] = leaving;
    if (!leaving)
      serve_chunk(pool, p, chunk, view);
  });
}

/// Those too, before new chunks. A chunk all of whose blocks are free loses its
/// class.
SS_BOTH_SIDES void serve_leaving(RowPool &pool, Provision &p, int32_t thread, int32_t threads) {
  with_chunks(pool, p, thread, threads, [&](int32_t chunk, const ChunkView &view) {
    const int32_t c = view.size_class;
    if (c == kNoBlock)
      return;
    const int32_t served = view.leaving ? serve_chunk(pool, p, chunk, view) : 0;
    if (view.free - served == p.blocks[c])
      pool.chunk_class[chunk] = kNoBlock;
  });
}

/// What is left is served from chunks without a class.
SS_BOTH_SIDES void want_chunks(RowPool &pool, Provision &p) {
  for (int32_t c = 0; c < pool.class_count; ++c) {
    p.first_chunk[c] = p.wanted;
    const int32_t missing = p.asked[c] - p.given[c];
    if (missing > 0)
      p.wanted += (missing + p.blocks[c] - 1) / p.blocks[c];
  }
}

SS_BOTH_SIDES void give_chunk(RowPool &pool, Provision &p, int32_t chunk, int32_t number) {
  int32_t c = pool.class_count - 1;
  while (p.first_chunk[c] > number)
    --c;
  const int32_t blocks = p.blocks[c];
  for (int32_t w = 0; w < kMaskWords; ++w) {
    const int32_t bits = blocks - 32 * w;
    pool.free_blocks[int64_t(chunk) * kMaskWords + w] =
        bits >= 32 ? ~0u : bits > 0 ? (1u << bits) - 1 : 0u;
  }
  pool.chunk_class[chunk] = c;
  pool.leaving[chunk] = 0;
  serve(pool, p, c, chunk, p.given[c] + (number - p.first_chunk[c]) * blocks);
}

/// Chunks in their order, as far as they are wanted; counts what is in use.
SS_BOTH_SIDES void serve_fresh(RowPool &pool, Provision &p, int32_t thread, int32_t threads) {
  int32_t used = 0, top = 0, rows = 0;
  with_chunks(pool, p, thread, threads, [&](int32_t chunk, ChunkView view) {
    if (view.size_class == kNoBlock && chunk < p.limit && p.taken < p.wanted) {
      const int32_t number = add_shared(&p.taken, 1);
      if (number < p.wanted) {
        give_chunk(pool, p, chunk, number);
        view = {pool.chunk_class[chunk], 0, free_in(pool, chunk)};
      }
    }
    const int32_t c = view.size_class;
    if (c == kNoBlock)
      return;
    const int32_t taken = p.blocks[c] - view.free;
    add_shared(&p.taken_blocks[thread % kTakenSums][c], taken);
    if (view.free > 0 && chunk < p.limit)
      add_shared(&p.free_blocks[thread % kTakenSums][c], view.free);
    rows += taken * pool.capacity[c];
    ++used;
    top = chunk + 1;
  });
  if (used == 0)
    return;
  add_shared(&p.used, used);
  add_shared(&p.used_rows[thread % kTakenSums], rows);
  max_shared(&p.top, top);
}

/// Counts what was denied, the chunks that would do, and those that what is foreseen
/// needs if nothing is given back before.
SS_BOTH_SIDES void count_grants(RowPool &pool, Provision &p, int32_t thread, int32_t threads) {
  for (int32_t c = thread; c < pool.class_count; c += threads) {
    // A sixteenth more than there are, so that states come and go in place.
    int32_t taken = 0, free = 0;
    for (int32_t i = 0; i < kTakenSums; ++i)
      taken += p.taken_blocks[i][c], free += p.free_blocks[i][c];
    const int32_t room = taken + taken / 16;
    pool.enough[c] = (room + p.blocks[c] - 1) / p.blocks[c];
    if (p.coming[c] > free)
      add_shared(&p.coming_chunks, (p.coming[c] - free + p.blocks[c] - 1) / p.blocks[c]);
  }
  int64_t denied = 0;
  for (int32_t i = thread; i < pool.grant_count; i += threads)
    denied += pool.granted[i] == kNoBlock;
  if (denied > 0)
    add_shared(&pool.denied, denied);
}

SS_BOTH_SIDES void end_provision(RowPool &pool, const Provision &p) {
  PoolReport report;
  pool.top = p.top;
  report.step = ++pool.step;
  report.used_rows = 0;
  for (int32_t i = 0; i < kTakenSums; ++i)
    report.used_rows += p.used_rows[i];
  report.denied = pool.denied;
  report.live_sum = pool.live_sum += pool.live;
  report.chunk_sum = pool.chunk_sum += p.limit;
  report.limit = p.seen;
  report.used_chunks = p.used;
  report.top = p.top;
  const int32_t got = p.taken < p.wanted ? p.taken : p.wanted;
  report.fresh = got;
  report.missing = p.wanted - got;
  report.coming = pool.foreseen ? p.coming_chunks : -1;
  pool.foreseen = 0;
  volatile PoolReport *out = pool.report;
  out->used_rows = report.used_rows;
  out->denied = report.denied;
  out->live_sum = report.live_sum;
  out->chunk_sum = report.chunk_sum;
  out->limit = report.limit;
  out->used_chunks = report.used_chunks;
  out->top = report.top;
  out->fresh = report.fresh;
  out->missing = report.missing;
  out->coming = report.coming;
#ifdef __CUDACC_RTC__
  __threadfence_system();
#endif
  out->step = report.step;
}

} // namespace ss

#ifdef __CUDACC_RTC__

/// A block per pool.
extern "C" __global__ void __launch_bounds__(1024, 1) ss_provide_rows(ss::RowPool *pools) {
  __shared__ ss::Provision p;
  ss::RowPool &pool = pools[blockIdx.x];
  const int32_t thread = threadIdx.x, threads = blockDim.x;
  ss::load_provision(pool, p, thread, threads);
  __syncthreads();
  if (thread == 0)
    ss::begin_provision(pool, p);
  __syncthreads();
  ss::clear_grants(pool, p, thread, threads);
  __syncthreads();
  ss::serve_partial(pool, p, thread, threads);
  __syncthreads();
  ss::serve_leaving(pool, p, thread, threads);
  __syncthreads();
  if (thread == 0)
    ss::want_chunks(pool, p);
  __syncthreads();
  ss::serve_fresh(pool, p, thread, threads);
  __syncthreads();
  ss::count_grants(pool, p, thread, threads);
  __syncthreads();
  if (thread == 0)
    ss::end_provision(pool, p);
}

#endif
