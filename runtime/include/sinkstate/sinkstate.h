/* SinkState runtime: decode recurrent states kept in low-rank form.
 *
 * The C API of libsinkstate. It needs no LLVM. Layouts and names of the state
 * tables are described in docs/interfaces.md, the mathematics in
 * docs/state-math.md.
 *
 * Every function that can fail returns an ss_result; ss_last_error() then
 * gives one line for the calling thread: what was found, what was expected and
 * what to do. No exception and no abort crosses this boundary. Any call may be
 * SS_INVALID_ARGUMENT (a null pointer, a layer or slot that is none, a slot without
 * an owner, a struct_size of another header), SS_OUT_OF_MEMORY of the host,
 * SS_INTERNAL, and of an engine SS_BUSY, on CUDA SS_DEVICE_ERROR or SS_DEVICE_LOST.
 * Other errors are named with their functions.
 *
 * Threads: an engine may be used from one thread at a time, whichever it is; a
 * call that finds another in the same engine is SS_BUSY and does nothing. Two
 * engines are independent. Packages are immutable and may be shared.
 *
 * Devices: on the CPU every call is done when it returns, and `stream` is not
 * looked at. On CUDA the calls that take a `stream` (a CUstream or
 * cudaStream_t; NULL is the legacy default stream) only queue work on it. The
 * calls of a step (ss_begin_step, ss_decode_layer, ss_end_step) wait for nothing
 * and may be captured in a CUDA graph, which then may be replayed for every step
 * of that batch size: slots, positions and counts are read from device memory.
 * They allocate nothing, but that ss_begin_step, where it is not captured, may
 * map memory for the rows of states (ss_engine_tend). Work on one engine has to
 * be in one order: use one stream, or make the streams wait for each other.
 * Arrays that kernels touch (slots, inputs, weights, y) are device memory of the
 * engine's GPU, and values in them cannot be checked before they are used. Arrays
 * of other types are converted by kernels, which are captured like all others:
 * slots, padding and numbers are those that a replay finds. The calls of an engine
 * share the memory for it, which the one order of its work keeps apart.
 */
#ifndef SINKSTATE_H
#define SINKSTATE_H

#include <stddef.h>
#include <stdint.h>

#include "sinkstate/routines.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SS_API __attribute__((visibility("default")))
#else
#define SS_API
#endif

typedef enum ss_result {
  SS_OK = 0,
  SS_INVALID_ARGUMENT = 1,   /* the caller's values are wrong */
  SS_NOT_FOUND = 2,          /* a file, kernel or symbol is missing */
  SS_MALFORMED_PACKAGE = 3,  /* the package's bytes are not what they should be */
  SS_VERSION_MISMATCH = 4,   /* package, ABI or instruction set of another build */
  SS_OUT_OF_MEMORY = 5,      /* nothing was changed; free slots and try again */
  SS_SLOTS_EXHAUSTED = 6,    /* every slot has an owner */
  SS_BUFFER_FULL = 7,        /* no room for another pair: end the step first */
  SS_INTERNAL = 8,           /* a fault of this library */
  SS_DEVICE_UNAVAILABLE = 9, /* no driver, no such GPU, or a part of CUDA that
                                is missing or too old */
  SS_DEVICE_ERROR = 10,      /* the driver refused a call; others still work */
  SS_DEVICE_LOST = 11,       /* the GPU's context is gone (an illegal address,
                                a hardware fault): end the process */
  SS_NOT_SUPPORTED = 12,     /* the engine's device cannot do this */
  SS_NOT_IN_BUFFER = 13,     /* the tokens to forget have been compacted */
  SS_MALFORMED_SNAPSHOT = 14,/* the bytes are no snapshot, or a damaged one */
  SS_FOREIGN_SNAPSHOT = 15,  /* a good snapshot that does not fit this engine */
  SS_BUSY = 16               /* another thread is in a call of this engine */
} ss_result;

/* One line about the last failure in this thread; "" after none. */
SS_API const char *ss_last_error(void);
/* "0.1.0 (abi 4)" */
SS_API const char *ss_version(void);
/* 10000 * major + 100 * minor + patch of this library. */
SS_API int32_t ss_version_number(void);
/* SS_ABI_VERSION of this library: it differs from the header's where the two do
 * not fit. Within one ABI version structs only grow, at their ends: `struct_size`
 * says which fields the caller knows, and what it does not know has its
 * default. */
SS_API int32_t ss_abi_version(void);

/* ---- messages ----------------------------------------------------------- */

typedef enum ss_log_level {
  SS_LOG_OFF = 0,
  SS_LOG_ERROR = 1,   /* a call failed with SS_INTERNAL, SS_DEVICE_ERROR or
                         SS_DEVICE_LOST: a fault of the library or device */
  SS_LOG_WARNING = 2, /* work goes on, with less precision or more memory */
  SS_LOG_INFO = 3,    /* once per engine, and for kernels that are waited for or
                         overridden */
  SS_LOG_DEBUG = 4    /* single events, such as a dropped consolidation */
} ss_log_level;

/* `message` is one line and lives during the call; `subject` is a fixed word:
 * "engine", "consolidation", "memory", "cache" (the kernel cache, SS_DUMP_DIR and
 * SS_OVERRIDE_DIR) or "call" (of every SS_LOG_ERROR; the line begins with the
 * function's name and is ss_last_error otherwise). May be called on any thread,
 * also while an engine's call runs: do not call that engine from it. */
typedef void (*ss_log_callback)(void *context, ss_log_level level,
                                const char *subject, const char *message);

/* One callback for the process; NULL: none, the default. Not while engines are
 * in use. While there is none, lines of the subject "cache" go to standard error,
 * since what they say has been asked for by the environment. */
SS_API ss_result ss_log_set(ss_log_callback callback, void *context,
                            ss_log_level most);

/* ---- packages ---------------------------------------------------------- */

typedef struct ss_package ss_package;

/* Opens a package folder, checks its manifest, picks the best CPU library that
 * this processor can run and verifies its hash. SS_NOT_FOUND, SS_MALFORMED_PACKAGE
 * (also where a hash is another), SS_VERSION_MISMATCH. */
SS_API ss_result ss_package_open(const char *folder, ss_package **out);

/* A package whose kernels are already in memory (compiled at start-up).
 * `lookup(context, name)` returns the CPU entry point of a kernel or NULL; the
 * code must stay valid until the package is closed. SS_NOT_FOUND where it has no
 * such kernel; else as ss_package_open. */
typedef ss_cpu_kernel (*ss_kernel_lookup)(void *context, const char *name);
SS_API ss_result ss_package_from_memory(const char *manifest, size_t size,
                                        ss_kernel_lookup lookup, void *context,
                                        ss_package **out);

/* Engines keep what they need: a package may be closed right after
 * ss_engine_create (for packages in memory, the code must outlive the engine). */
SS_API void ss_package_close(ss_package *package);

/* ---- engines ----------------------------------------------------------- */

typedef struct ss_engine ss_engine;

typedef enum ss_device_kind {
  SS_DEVICE_CPU = 0,
  SS_DEVICE_CUDA = 1
} ss_device_kind;

/* When the frozen parts of states are consolidated by exact SVDs on the host. */
typedef enum ss_consolidation {
  SS_CONSOLIDATION_OFF = 0,          /* only when rows would run out */
  SS_CONSOLIDATION_INLINE = 1,       /* in the decode call that makes it due;
                                        not on CUDA */
  SS_CONSOLIDATION_ASYNCHRONOUS = 2, /* on threads of their own; results are
                                        swapped in when they are there, and
                                        dropped when they are too late: outputs
                                        depend on time. Decoding never waits */
  SS_CONSOLIDATION_DETERMINISTIC = 3 /* the same, but a result is swapped in at
                                        a fixed token of the request, for which
                                        a decode call may have to wait. On CUDA
                                        every ss_begin_step waits for the steps
                                        before it, and is SS_NOT_SUPPORTED while
                                        its stream is captured */
} ss_consolidation;

/* What an engine does when rows need memory that there is not. */
typedef enum ss_exhaustion {
  SS_EXHAUSTION_REFUSE = 0, /* the call is SS_OUT_OF_MEMORY, before anything
                               has changed: free a slot and repeat it. On CUDA
                               the calls between steps are; a step that runs all
                               the same, in a graph, compacts as below, and
                               ss_engine_synchronize reports it */
  SS_EXHAUSTION_TIGHTEN = 1 /* the compaction keeps the largest components that
                               fit the rows the state has: status bit 8, and
                               counted. SS_OUT_OF_MEMORY only where a state has
                               no rows of its own: at its first compaction, and
                               where a fork shares them. Not in deterministic
                               mode */
} ss_exhaustion;

typedef struct ss_engine_options {
  uint32_t struct_size;      /* sizeof(ss_engine_options) */
  int32_t slots;             /* requests held at the same time, >= 1 */
  int32_t threads;           /* workers of the CPU device, at most 1024; 0: all
                                processors */
  int32_t dense_fallback;    /* 1: a state goes dense where factors are larger;
                                0: never; -1: 1, but 0 with row_capacity. On
                                CUDA a dense state comes back only where the
                                package has the layer's init kernel (ss-compile
                                --init-where-dense or --init), and the
                                policy is relative with eps of 2^-13 or more; in
                                f16 it also stays dense where it grows out of
                                the type's range (status bit 16) */
  int32_t consolidate_every; /* compactions of a state between two exact SVDs of
                                its frozen part; 0: never (only when rows would
                                run out); -1: 4, CUDA 0 where consolidation is
                                not set either */
  int32_t device;            /* an ss_device_kind */
  int32_t device_ordinal;    /* which GPU, as CUDA numbers them */
  int32_t row_capacity;      /* CUDA: 0: states have the rows that they need, in
                                pools that grow and shrink. Else every state has
                                so many rows from the beginning (at most its
                                layer's bound); compaction keeps at most
                                row_capacity less the layer's buffer, and status
                                bit 8 says where that dropped some that the
                                policy would have kept. CPU: 0 */
  int32_t consolidation;     /* an ss_consolidation; -1: CPU inline, CUDA off,
                                or asynchronous where consolidate_every is
                                positive */
  int32_t consolidation_threads; /* of the SVDs, 1 to 256; 0: a quarter of the
                                processors that the process may use, 1 to 8. The
                                download and the upload have one more each, and
                                CUDA one that watches the device */
  int32_t consolidation_lag; /* deterministic: 0: a result lands before the first
                                token behind the compaction that made it due (on
                                CUDA in layers that compact after their tokens);
                                others, and -1: right before the next compaction.
                                Nowhere between, so that ss_slot_rollback cannot
                                forget tokens behind which it has landed */
  int32_t consolidation_cpu_count; /* 0: threads are not pinned */
  const int32_t *consolidation_cpus; /* processors for the threads of
                                consolidation: download, upload, SVDs, then the
                                one that watches the device, from the beginning
                                again where there are fewer. One that a thread
                                cannot be bound to leaves it unbound, with a
                                warning in the log. Read during ss_engine_create
                                only */
  int32_t max_batch;         /* rows times tokens of the largest call whose
                                arrays are not int32 slots, negative padding and
                                f32 (on CUDA: f32 where kernels read it, see
                                ss_input): memory to convert them is allocated
                                for so many with the engine. At most 2^20. 0:
                                there are no such calls. A larger call, or one
                                that needs it with 0, is SS_INVALID_ARGUMENT */
  int32_t reserved_slots;    /* slots 0 to reserved_slots - 1 are never handed
                                out: 1 for callers whose null slot is 0 */
  int64_t state_bytes_limit; /* most bytes for states, as allocated_bytes in
                                ss_statistics counts them; 0: no limit */
  int32_t exhaustion;        /* an ss_exhaustion: what happens at that limit, or
                                where the device has no more memory */
  int32_t compaction_streams; /* CUDA: streams of the engine's own, of the lowest
                                priority, on which compactions run beside the
                                decodes of other layers: so many behind their
                                layer, as many more where layers compact before
                                their tokens, two for folds and one of the highest
                                priority for what a step plans. The end of the
                                step waits for all. 0: 8. Up to 16; -1: none at
                                all, compactions run on the caller's stream. With them a capture
                                holds whole steps, ss_begin_step to ss_end_step;
                                captures of parts of a step need -1 */
} ss_engine_options;

/* Defaults: 1 slot, 0 threads, what the device does, the CPU. */
#define ss_engine_options_init(options)                                        \
  ss_engine_options_init_sized((options), sizeof(ss_engine_options))
SS_API void ss_engine_options_init_sized(ss_engine_options *options,
                                         size_t struct_size);

/* Bytes an engine would need, before anything is allocated and without looking
 * for a device. `expected` takes every state at half its rank bound; on CUDA with
 * row_capacity everything is allocated at once, and both are what that takes.
 * `worst_case` there includes the blocks that states hold while they move. Both
 * hold what max_batch takes beside the states; without it they are at most
 * state_bytes_limit. */
typedef struct ss_memory_plan {
  uint32_t struct_size;
  int64_t worst_case;
  int64_t expected;
  int64_t dense; /* the same states kept dense in f32, for comparison */
  int64_t hand_over; /* CUDA: what snapshots, forks and dense states (handover.h)
                        take at most for what is on its way, beside both: the
                        first such calls allocate it, and the engine keeps it */
} ss_memory_plan;
SS_API ss_result ss_engine_plan(const ss_package *package,
                                const ss_engine_options *options,
                                ss_memory_plan *out);

/* Options that do not fit the device are SS_INVALID_ARGUMENT. SS_OUT_OF_MEMORY also
 * where state_bytes_limit is less than what the engine takes without any state.
 * SS_NOT_FOUND where the package has no code for the device;
 * SS_DEVICE_UNAVAILABLE. */
SS_API ss_result ss_engine_create(const ss_package *package,
                                  const ss_engine_options *options,
                                  ss_engine **out);
/* On CUDA it waits for the whole GPU, which CUDA refuses while any stream of it is
 * captured, and may lose that capture: destroy engines between captures. Within one
 * everything is given back all the same (what is refused is logged), provided that
 * what the engine had queued was done before and that it has no part in the capture. */
SS_API void ss_engine_destroy(ss_engine *engine);

typedef struct ss_layer_info {
  uint32_t struct_size;
  const char *name; /* valid while the engine lives */
  const char *type; /* "gdn", "mamba2", "kda" */
  int32_t index;    /* place in the whole model, attention layers counted */
  int32_t heads, key_heads, dv, dk;
  int32_t dense_form;    /* 1: read, updated and written every step */
  int32_t channel_decay; /* gate inputs and dt_bias are per key channel */
  int32_t has_beta;
  int32_t active, buffer, phase;
  int32_t sink_form; /* 1: see ss_engine_set_sink */
  int32_t compacts_before; /* 1: before its tokens, not after them; between steps
                              a buffer may be full */
} ss_layer_info;
SS_API int32_t ss_layer_count(const ss_engine *engine);
SS_API ss_result ss_layer_get_info(const ss_engine *engine, int32_t layer,
                                   ss_layer_info *out);

/* The mean values of the heads of a layer of form "sink", [heads, dv] = count
 * floats of the host, before any slot is handed out: that direction of a state is
 * kept, the rest truncated. Zeros, as before this call: no sink. The length of a
 * mean value has no influence, from 1e-45 to 3e38. */
SS_API ss_result ss_engine_set_sink(ss_engine *engine, int32_t layer,
                                    const float *means, int64_t count);

/* Where the layer's heads begin among the whole model's (0 as created), before
 * any slot is handed out: under tensor parallelism rank r has heads from
 * r * heads on. The random bits of layers with `rounding stochastic` go by it, so
 * that a share of the heads is rounded as the whole is; nothing else does. */
SS_API ss_result ss_engine_set_first_head(ss_engine *engine, int32_t layer,
                                          int32_t head);

/* ---- slots ------------------------------------------------------------- */

/* A fresh slot: every state zero, position 0, whatever its memory holds. On
 * CUDA the states are made zero on `stream`; steps with this slot come after
 * that, and the last step of its former owner before it. SS_SLOTS_EXHAUSTED where
 * every slot has an owner; on CUDA SS_OUT_OF_MEMORY as in ss_engine_tend. Not on
 * a stream that is captured, nor ss_slot_reset (SS_INVALID_ARGUMENT). */
SS_API ss_result ss_slot_alloc(ss_engine *engine, int32_t *slot, void *stream);
/* Its owner is done with a slot (SS_INVALID_ARGUMENT where it has none). On CUDA,
 * between ss_begin_step and ss_end_step, the slot is handed out again when the step
 * is over: what the step has listed is done to the states that it began with. */
SS_API ss_result ss_slot_free(ss_engine *engine, int32_t slot);
/* Makes a slot fresh that keeps its owner. On CUDA between steps
 * (SS_INVALID_ARGUMENT within one: ss_cancel_step first). */
SS_API ss_result ss_slot_reset(ss_engine *engine, int32_t slot, void *stream);
/* What the random bits of layers with `rounding stochastic` depend on beside the
 * position, layer, head (of the whole model, see ss_engine_set_first_head), row
 * and element: 0 in a fresh slot. Snapshots and forks carry it along. On CUDA it
 * waits for what is queued on `stream`, and is for the time between steps
 * (SS_INVALID_ARGUMENT within one). */
SS_API ss_result ss_slot_set_rounding_key(ss_engine *engine, int32_t slot,
                                          uint64_t key, void *stream);

/* ---- decoding ---------------------------------------------------------- */

/* Elements of arrays in the caller's memory. */
typedef enum ss_element_type {
  SS_ELEMENT_F32 = 0,
  SS_ELEMENT_F16 = 1,
  SS_ELEMENT_BF16 = 2
} ss_element_type;

typedef enum ss_slot_type {
  SS_SLOT_I32 = 0,
  SS_SLOT_I64 = 1
} ss_slot_type;

/* Which slot indices are padding: rows that touch no state and whose y is 0.
 * A value that the rule names must not be a slot that can have an owner: see
 * reserved_slots. */
typedef enum ss_padding {
  SS_PADDING_NEGATIVE = 0, /* index < 0 */
  SS_PADDING_VALUE = 1,    /* index == padding_value; other negative ones are
                              errors: on CUDA, where no call sees them, their
                              rows are padding, and ss_engine_synchronize
                              reports it. So it is with slots that are too large
                              for the engine, where slots are converted */
  SS_PADDING_UP_TO = 2     /* index <= padding_value: a null slot 0 */
} ss_padding;

/* Rows of a batch in f32. Row b starts at data + b * stride (in elements);
 * within a row heads are contiguous. stride 0 means packed. On CUDA rows of q, k,
 * v, y and of a gate per channel begin at multiples of 16 bytes (of 8 or 4 where
 * the elements of a head are no multiple of 4); with max_batch others are copied
 * to such places first. */
typedef struct ss_input {
  const float *data;
  int64_t stride;
} ss_input;

typedef struct ss_decode_args {
  uint32_t struct_size;
  int32_t batch;
  const int32_t *slots;    /* [batch]; negative: padding, its y becomes 0. A slot
                              may appear once: the CPU refuses the call, on CUDA
                              rows after the first are padding, and
                              ss_engine_synchronize reports it */
  ss_input q, k;           /* [batch, key_heads, dk], not normalised */
  ss_input v;              /* [batch, heads, dv] */
  ss_input gate;           /* [batch, heads] or [batch, heads, dk], raw */
  ss_input beta;           /* [batch, heads] before the sigmoid; mamba2: unused */
  const float *a_log;      /* [heads] */
  const float *dt_bias;    /* [heads] or [heads, dk] */
  float *y;                /* [batch, heads, dv] */
  int64_t y_stride;
  void *stream;
  /* What the arrays hold, where it is not int32 slots, negative padding and f32:
   * the pointers are then cast, strides stay in elements. Such arrays are
   * converted on the way (max_batch in ss_engine_options), 16-bit outputs are
   * rounded to nearest, ties to even; NaN stays NaN. On CUDA that is one launch
   * before the layer's and one after it, where there is something to convert;
   * a_log and dt_bias are f32. */
  int32_t slot_type;     /* an ss_slot_type */
  int32_t padding;       /* an ss_padding */
  int64_t padding_value;
  int32_t input_type;    /* of q, k, v: an ss_element_type */
  int32_t gate_type;     /* of gate and beta */
  int32_t y_type;
  int32_t reserved;      /* 0 */
} ss_decode_args;

/* The slots of a batch, of any type and with any padding rule, as in
 * ss_decode_args. */
typedef struct ss_rows {
  uint32_t struct_size;
  int32_t batch;
  const void *slots;
  int32_t slot_type;
  int32_t padding;
  int64_t padding_value;
  void *stream;
} ss_rows;

/* Begins a step of these requests, before its first layer. On CUDA it lists,
 * on the device, the states that are due in this step; every layer is then
 * decoded once, and ss_end_step ends the step. On the CPU it gives up what steps of
 * these slots have begun, does nothing else and may be left out. `slots` as in ss_decode_args; on CUDA the array is read beside the
 * step's work, and stays as it is, in the stream's order, until ss_end_step; the
 * batch has at most 4096 rows more than the engine has slots.
 *
 * A step that is begun again was given up, as by ss_cancel_step: also one that
 * runs cannot be given up by one that is captured. SS_OUT_OF_MEMORY as in
 * ss_engine_tend, before anything has changed. */
SS_API ss_result ss_begin_step(ss_engine *engine, const int32_t *slots,
                               int32_t batch, void *stream);

/* Decodes one token of every row in one layer: y = H q after the update. Then
 * compacts the states of the layer that are due at their request's position; a
 * layer that compacts before its tokens (compacts_before in ss_layer_info) does
 * so in the next step's call, before its token.
 * A layer takes one token per step of a slot; a second one before ss_end_step
 * is SS_BUFFER_FULL. On an error nothing has changed: the call can be
 * repeated; but not on CUDA after SS_DEVICE_ERROR, which leaves the step half done:
 * ss_cancel_step gives it up. */
SS_API ss_result ss_decode_layer(ss_engine *engine, int32_t layer,
                                 const ss_decode_args *args);

/* Ends the step for these requests: their positions advance by one. Call it
 * after the last layer. Negative slots are skipped. SS_INVALID_ARGUMENT where no
 * step has begun (CUDA), a layer is missing (on the CPU: of one of these slots), or a
 * slot has no owner or appears twice (CPU); nothing has changed then, and the layer
 * can still be decoded. */
SS_API ss_result ss_end_step(ss_engine *engine, const int32_t *slots,
                             int32_t batch, void *stream);

/* ss_begin_step and ss_end_step for slots of any type. What ss_begin_step_rows has
 * converted on CUDA is not converted again by the calls of the step that name the
 * same array (slots, batch, slot_type, padding and padding_value are equal); calls
 * with another array convert theirs. */
SS_API ss_result ss_begin_step_rows(ss_engine *engine, const ss_rows *rows);
SS_API ss_result ss_end_step_rows(ss_engine *engine, const ss_rows *rows);

/* Gives up the step that has begun and not ended; where there is none it does
 * nothing. What was planned for it is taken back, and calls between steps are
 * possible again. Slots of which a layer has decoded a token in it (on CUDA one that
 * does not compact before its tokens, or several tokens) are left with states that
 * are part old, part new: ss_slot_reset or ss_slot_free is all that is done with them.
 * Every other call that changes or copies them is SS_INVALID_ARGUMENT; a step that
 * names them on CUDA decodes what is of no use, and ss_engine_synchronize says so.
 * All other slots are as before the step. Where the step has changed nothing, so are
 * its own.
 *
 * On CUDA it waits for nothing. A step that is being captured is given up in its
 * capture: what comes of its slots is what every replay does to them. One whose
 * capture was thrown away is nothing, for this call and for all that are made between
 * steps (with compaction_streams -1, where captures may hold parts of steps, for this
 * one and ss_begin_step alone). SS_INVALID_ARGUMENT where the stream is captured and
 * the step runs, or where another stream captures it. */
SS_API ss_result ss_cancel_step(ss_engine *engine, void *stream);

/* Waits until everything queued on `stream` is done, and what a step has queued
 * beside it, and reports what went wrong in it: SS_INVALID_ARGUMENT for slots that
 * are none or were named twice, SS_OUT_OF_MEMORY where states were compacted within
 * the rows they had. What is consolidated asynchronously has then landed or been
 * dropped. For tests and measurements; not on a stream that is captured. */
SS_API ss_result ss_engine_synchronize(ss_engine *engine, void *stream);

/* Looks after the memory of states between two steps, without waiting: maps
 * more where the device has reported that rows get short, gives back what no
 * state uses, and releases the rows of freed slots. ss_begin_step and
 * ss_slot_alloc do the same where they are not captured, so that only an engine
 * that replays graphs has to call it: before each replay, or every few.
 * SS_OUT_OF_MEMORY where the next step may find no rows and the options say
 * SS_EXHAUSTION_REFUSE; steps that are run nevertheless compact within the rows
 * that states have. SS_INVALID_ARGUMENT within a step. On the CPU it does
 * nothing. */
SS_API ss_result ss_engine_tend(ss_engine *engine, void *stream);

/* ---- memory ------------------------------------------------------------ */

/* Memory of the engine's device, for callers that have no other way to it;
 * SS_OUT_OF_MEMORY where it has no more. On the CPU it is ordinary memory. The
 * copies return when they are done, after everything queued on `stream` before: not
 * on a stream that is captured. */
SS_API ss_result ss_device_malloc(ss_engine *engine, size_t bytes, void **out);
SS_API ss_result ss_device_free(ss_engine *engine, void *memory);
SS_API ss_result ss_device_copy_in(ss_engine *engine, void *to,
                                   const void *from, size_t bytes,
                                   void *stream);
SS_API ss_result ss_device_copy_out(ss_engine *engine, void *to,
                                    const void *from, size_t bytes,
                                    void *stream);

/* ---- looking at states -------------------------------------------------- */

/* Results are host memory. On CUDA these calls wait for the whole GPU first,
 * and are not for the time of a capture, by whatever engine or thread
 * (SS_DEVICE_ERROR, and the capture is lost). Everything else may be called while
 * streams are captured that it is not given, in whatever mode, but for
 * ss_engine_create, and calls that have to know of states that a step may have left
 * (ss_cancel_step). */


/* Writes H of every head, [heads, dv, dk] f32, without changing the state. */
SS_API ss_result ss_state_densify(ss_engine *engine, int32_t layer,
                                  int32_t slot, float *out);
/* Stored rank of every head, [heads]; -1: dense. */
SS_API ss_result ss_state_ranks(const ss_engine *engine, int32_t layer,
                                int32_t slot, int32_t *ranks);
/* Sticky status bits of every head, [heads]. */
SS_API ss_result ss_state_status(const ss_engine *engine, int32_t layer,
                                 int32_t slot, int32_t *status);

typedef struct ss_statistics {
  uint32_t struct_size;
  int64_t dense_bytes;     /* of the slots in use, all states dense in f32 */
  int64_t live_bytes;      /* the formula of docs/state-math.md section 7 */
  int64_t allocated_bytes; /* what the engine holds for states now, in whole
                              pages: rows, buffers, tables, free blocks kept
                              for reuse */
  int64_t allocated_peak;
  int64_t compactions;     /* of one state each */
  int64_t folds;           /* of dense states */
  int64_t consolidations;
  int64_t went_dense, went_factored;
  double decode_seconds, compact_seconds, consolidate_seconds; /* CUDA: 0.
                              Of the calling thread */
  /* Consolidation beside decoding, in states. What was started and has neither
   * landed nor been dropped is under way. */
  int64_t consolidations_started, consolidations_landed, consolidations_dropped;
  int64_t consolidation_waits;   /* decode calls that waited for a result */
  int64_t components_removed;    /* by consolidation, in whatever mode */
  int64_t consolidation_lag_sum; /* tokens between start and landing */
  int64_t consolidation_lag_max;
  /* Memory. The means are over the steps (ss_end_step) so far. */
  int64_t steps;
  double mean_allocated_bytes, mean_live_bytes;
  int64_t used_bytes;       /* of allocated_bytes, what is in the states' rows,
                               buffers and tables now; the rest is
                               fragmentation and blocks kept for reuse */
  int64_t conversion_bytes; /* for max_batch, not in allocated_bytes */
  int64_t tightened;        /* compactions that kept less than the policy would
                               have, for want of memory */
  int64_t refused;          /* calls that were SS_OUT_OF_MEMORY */
  int64_t shared_bytes;     /* rows that forks have and that are another slot's
                               too: not in used_bytes again */
  int64_t out_of_range;     /* folds after which a dense state of f16 had status
                               bit 16. CPU: where there was no memory for its
                               factors */
  int64_t hand_over_bytes;  /* CUDA: of a memory plan's hand_over, what is
                               allocated now; not in allocated_bytes */
} ss_statistics;
SS_API ss_result ss_engine_statistics(const ss_engine *engine,
                                      ss_statistics *out);

/* The slots in use of one layer, now. */
typedef struct ss_layer_statistics {
  uint32_t struct_size;
  int32_t status;          /* of all states together: status bits, or'ed */
  int64_t states;          /* heads of slots in use */
  int64_t dense_states;    /* of those: stored dense */
  int64_t rank_sum;        /* of the others */
  int32_t rank_max;
  int32_t buffered_max;    /* most pairs in a buffer */
  int64_t dense_bytes, live_bytes; /* as in ss_statistics */
  int64_t allocated_bytes; /* CUDA: of the blocks of rows that its states have
                              alone; tables and what is free in the pools, which
                              layers share, belong to none */
} ss_layer_statistics;
SS_API ss_result ss_layer_get_statistics(const ss_engine *engine, int32_t layer,
                                         ss_layer_statistics *out);

#ifdef __cplusplus
}
#endif

#include "sinkstate/handover.h"

#endif
