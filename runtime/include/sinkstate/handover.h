/* What is done with a state besides decoding: several tokens at once, rollback,
 * snapshots, forks, dense states in and out. Part of sinkstate.h, which includes
 * it and says what holds of every call.
 */
#ifndef SINKSTATE_HANDOVER_H
#define SINKSTATE_HANDOVER_H

#include "sinkstate/sinkstate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- several tokens, rollback ------------------------------------------- */

/* Several tokens of every row in one call. Token t of row b begins at
 * data + b * stride + t * token_stride (in elements). 0: packed; a row is then
 * [tokens, heads, ...], which is also what stride 0 in ss_decode_args means
 * here. */
typedef struct ss_token_args {
  uint32_t struct_size;
  int32_t tokens;            /* most tokens of a row, at least 1 */
  const int32_t *row_tokens; /* [batch], 0 to `tokens` each, host memory; NULL:
                                all have `tokens`. y of the others becomes 0 */
  int64_t q_token_stride, k_token_stride, v_token_stride;
  int64_t gate_token_stride, beta_token_stride, y_token_stride;
} ss_token_args;

/* Decodes `tokens` tokens of every row in one layer, as ss_decode_layer does
 * one: the same bits as so many steps of one token, and y of every one of them
 * (the verification of draft tokens, or a chunk of a prompt). Every layer of
 * the step takes the same tokens; ss_end_step then advances the positions by
 * them.
 *
 * Layers with a declared draft length D (`draft` in the graph) compact before
 * the first token of the next call, not after the token that makes them due:
 * until then the newest D + 1 tokens of a call can be forgotten. A longer call
 * takes the ones before as accepted. Where compaction is due within the newest
 * D + 1 tokens, the later of them are therefore decoded before it: more exact,
 * but not the bits of single steps.
 *
 * Out of memory in a call of more than D + 1 tokens leaves the rows within a
 * step: reset their slots. On CUDA it only queues work and can be captured, as
 * the calls of a step; with `row_tokens` the batch has at most as many rows as
 * the engine has slots, and a captured call keeps the numbers it was made
 * with. */
SS_API ss_result ss_decode_layer_tokens(ss_engine *engine, int32_t layer,
                                        const ss_decode_args *args,
                                        const ss_token_args *tokens);

/* Forgets the newest `tokens` tokens of a slot in every layer: to the bit as if
 * they had never been decoded. Between steps. SS_NOT_IN_BUFFER where a layer
 * has compacted one of them or keeps no buffer (form dense); nothing has
 * changed then. Always possible after a call of at most D + 1 tokens, for as
 * many of them, where every layer declares D > 0 draft tokens. Of a longer call, of
 * T tokens, the newest D + 1: the others count as steps of one token each, and the
 * newest as a call of their own, so that n of those forgotten leave T - D - 1 such
 * steps and a call of D + 1 - n. On CUDA it comes after what `stream` has and waits
 * for the answer: not on a stream that is captured (SS_INVALID_ARGUMENT), as all
 * calls between steps that wait. */
SS_API ss_result ss_slot_rollback(ss_engine *engine, int32_t slot,
                                  int32_t tokens, void *stream);
/* The same for slots[i] by tokens[i] (host memory; negative slots are skipped):
 * all of them, or none on an error. */
SS_API ss_result ss_slot_rollback_batch(ss_engine *engine,
                                        const int32_t *slots,
                                        const int32_t *tokens, int32_t batch,
                                        void *stream);
/* The most tokens that ss_slot_rollback can forget now. This and
 * ss_slot_position wait for the whole GPU on CUDA, where positions are: a
 * replayed graph moves them on without the host. Neither is for the time of a
 * capture, as all calls that look at states. */
SS_API ss_result ss_slot_rollback_room(const ss_engine *engine, int32_t slot,
                                       int32_t *tokens);
/* Tokens decoded since the slot was fresh, those forgotten not counted. */
SS_API ss_result ss_slot_position(const ss_engine *engine, int32_t slot,
                                  int64_t *position);

/* ---- snapshots ---------------------------------------------------------- */

/* Everything of a slot as bytes: what a prefix cache stores, and what moves from
 * one engine to another. The format (docs/hand-over.md) is versioned, checksummed
 * and little-endian on every host; a library of a later minor version reads it.
 * Rows have the storage of the engine that wrote it. All calls are for slots
 * between steps. On CUDA they come after what `stream` has and return when
 * they are done; they, forks and dense states take device memory for what is on
 * its way when they first need it, which the engine keeps: at most `hand_over` of
 * ss_engine_plan (64 MiB, and up to 256 for matrices), counted by
 * `hand_over_bytes`, not by `allocated_bytes`. */

/* Bytes that ss_snapshot_write takes now. SS_NOT_SUPPORTED where a layer has form
 * deferred, as the other calls for snapshots, and dense states of such a layer. */
SS_API ss_result ss_snapshot_size(ss_engine *engine, int32_t slot,
                                  size_t *bytes, void *stream);
/* Writes the snapshot into host memory. `written` may be NULL. The slot is not
 * changed. SS_INVALID_ARGUMENT where `capacity` is less than ss_snapshot_size. */
SS_API ss_result ss_snapshot_write(ss_engine *engine, int32_t slot, void *out,
                                   size_t capacity, size_t *written,
                                   void *stream);
/* Makes the slot, whatever it held, what the snapshot says. A snapshot that is
 * damaged (SS_MALFORMED_SNAPSHOT), of a newer format (SS_VERSION_MISMATCH) or does
 * not fit (SS_FOREIGN_SNAPSHOT) is refused with the reason, and nothing has changed;
 * out of memory leaves a fresh slot. The graph has to be the one that the
 * snapshot's engine had, and so have the mean values of heads whose state has a
 * sink (ss_engine_set_sink): the slot then continues with the bits of the
 * original, on the same device. Other graphs of the same model:
 * ss_snapshot_restore_heads. */
SS_API ss_result ss_snapshot_restore(ss_engine *engine, int32_t slot,
                                     const void *data, size_t bytes,
                                     void *stream);

/* Heads [from, from + count) of the snapshot become heads [to, to + count) of
 * the engine. */
typedef struct ss_head_range {
  int32_t from, to, count;
} ss_head_range;

/* For engines that hold other shares of the heads (another tensor-parallel
 * width), or whose graph has other policies, storage, drafts or forms (a prefill
 * node's): takes ranges[layer] of every layer; ranges NULL and layers 0 take all
 * heads. The layers have to be the same but for these, and heads that share a key
 * in one have to share it in the other. The slot is fresh, or holds other heads of
 * the same position and buffered pairs: several snapshots can be joined. Heads
 * that no snapshot gave stay zero. The states are the same matrices, rounded where
 * this engine's storage is narrower: rows become a layer's of form sink and the
 * other way. SS_FOREIGN_SNAPSHOT where a state has more components than this
 * engine keeps (of policy fixed, R: R and the sink), or a sink of a mean value that
 * a layer of form sink does not have. On an error nothing has changed; out of
 * memory leaves the slot to be reset. */
SS_API ss_result ss_snapshot_restore_heads(ss_engine *engine, int32_t slot,
                                           const void *data, size_t bytes,
                                           const ss_head_range *ranges,
                                           int32_t layers, void *stream);

/* What the header of a snapshot says. The whole snapshot is checked only when
 * it is restored. */
typedef struct ss_snapshot_info {
  uint32_t struct_size;
  uint16_t major_version, minor_version;
  uint64_t bytes;
  int64_t position;
  int32_t layers;
  char fingerprint[72]; /* of the graph, 64 hexadecimal digits; "" unknown */
} ss_snapshot_info;
SS_API ss_result ss_snapshot_inspect(const void *data, size_t bytes,
                                     ss_snapshot_info *out);

/* ---- fork, dense states in and out --------------------------------------- */

/* Makes slot `to` (which has an owner; what it held is lost) equal to slot
 * `from`, both between steps: a prefix that two requests share. What either
 * decodes from then on is the other's no longer. On the CPU the rows are shared
 * until a compaction of either writes its own (shared_bytes in ss_statistics),
 * and a fork needs no memory; on CUDA they are copied, on the device. Out of
 * memory leaves `to` fresh. */
SS_API ss_result ss_slot_fork(ss_engine *engine, int32_t from, int32_t to,
                              void *stream);

/* Where element (v, k) of H of a head lies: at
 * place * slot_stride + head * head_stride + v * dv_stride + k * dk_stride
 * elements from the beginning. All strides 0: packed as [places, heads, dv, dk].
 * dv_stride 1 and dk_stride dv is the orientation [.., dk, dv]. */
typedef struct ss_dense_layout {
  uint32_t struct_size;
  int32_t type; /* an ss_element_type */
  int64_t slot_stride, head_stride, dv_stride, dk_stride;
} ss_dense_layout;

/* Writes H of every head of slots[i], decays and buffers included, to
 * places[i] of the caller's array; places NULL: to place i. At any token between
 * steps; the states are not changed, and nothing but the named elements is
 * written. Rounds to nearest. A slot that is named twice, or a negative place, is
 * SS_INVALID_ARGUMENT. `out` is memory of the engine's device; slots and
 * places are the host's. */
SS_API ss_result ss_state_densify_to(ss_engine *engine, int32_t layer,
                                     const int32_t *slots,
                                     const int32_t *places, int32_t n,
                                     void *out, const ss_dense_layout *layout,
                                     void *stream);

typedef struct ss_init_options {
  uint32_t struct_size;
  float eps;     /* drop weights below max(eps, 2^-22) times the largest; less
                    than 0: what the layer's policy drops */
  uint64_t seed; /* without influence, kept for its place: nothing is random. A
                    matrix gives the same bits, whatever the batch and slots */
} ss_init_options;

/* After a prefill: the state of slots[i] in this layer becomes the matrix at
 * places[i] (NULL: i), in factors, or dense where those would be no smaller, with
 * an empty buffer. A matrix that is not finite gives a state of status bit 1.
 * ss_slot_set_position then says once for all layers how many tokens the
 * request has; a request without a prefill needs neither. A slot that is named
 * twice is SS_INVALID_ARGUMENT. `dense` is memory of
 * the engine's device; `options` may be NULL. Out of memory leaves the slots to
 * be reset.
 * Where the package has the layer's init kernel (ss-compile --init: all;
 * --init-where-dense: those of relative policies whose states may be dense) the
 * device decomposes; what
 * such a kernel does not find (SS_INIT_MOST_COMPONENTS and SS_INIT_LEAST_EPS in
 * sinkstate/routines.h), and every state of other packages, is an exact SVD on
 * the host. Where states may not go dense, components beyond what a compaction
 * keeps are dropped, with status bit 8. */
SS_API ss_result ss_state_init(ss_engine *engine, int32_t layer,
                               const int32_t *slots, const int32_t *places,
                               int32_t n, const void *dense,
                               const ss_dense_layout *layout,
                               const ss_init_options *options, void *stream);

/* Tokens that the request of a slot has, all of them in its states: compactions
 * follow it. Between steps; not smaller than what its buffers hold, and at most
 * 2^62 (SS_INVALID_ARGUMENT). */
SS_API ss_result ss_slot_set_position(ss_engine *engine, int32_t slot,
                                      int64_t position, void *stream);

#ifdef __cplusplus
}
#endif
#endif
