/* The C API from C11, every function of it: a package in memory whose one kernel
 * is written here, an engine, a slot, three tokens and the state they leave. */
#include "sinkstate/sinkstate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DV = 3, DK = 2 };

static const char manifest[] =
    "{\"format\": \"sinkstate-package\", \"version\": 1, \"abi\": 4,"
    " \"model\": \"from-c\","
    " \"layers\": [{\"name\": \"only\", \"index\": 0, \"type\": \"mamba2\","
    "  \"heads\": 1, \"key_heads\": 1, \"dv\": 3, \"dk\": 2,"
    "  \"form\": \"dense\", \"storage\": \"f32\", \"channel_decay\": false,"
    "  \"has_beta\": false, \"kernels\": {\"decode\": \"sum\"}}],"
    " \"kernels\": [{\"name\": \"sum\", \"role\": \"decode\", \"args\": ["
    "  {\"name\": \"dense\", \"type\": \"f32*\"},"
    "  {\"name\": \"slots\", \"type\": \"i32*\"},"
    "  {\"name\": \"q\", \"type\": \"f32*\"},"
    "  {\"name\": \"k\", \"type\": \"f32*\"},"
    "  {\"name\": \"v\", \"type\": \"f32*\"},"
    "  {\"name\": \"y\", \"type\": \"f32*\"},"
    "  {\"name\": \"y_stride\", \"type\": \"i64\"}]}]}";

/* H += v k^T; y = H q. */
static void sum(const void *const *args, const ss_routine_table *routines,
                int64_t begin, int64_t end) {
  float *dense = *(float *const *)args[0];
  const int32_t *slots = *(const int32_t *const *)args[1];
  const float *q = *(const float *const *)args[2];
  const float *k = *(const float *const *)args[3];
  const float *v = *(const float *const *)args[4];
  float *y = *(float *const *)args[5];
  const int64_t stride = *(const int64_t *)args[6];
  (void)routines;
  for (int64_t b = begin; b < end; ++b) {
    for (int r = 0; r < DV; ++r) {
      float *row = dense + (slots[b] * DV + r) * DK;
      y[b * stride + r] = 0;
      if (slots[b] < 0)
        continue;
      for (int c = 0; c < DK; ++c) {
        row[c] += v[b * DV + r] * k[b * DK + c];
        y[b * stride + r] += row[c] * q[b * DK + c];
      }
    }
  }
}

static ss_cpu_kernel lookup(void *context, const char *name) {
  ++*(int *)context;
  return strcmp(name, "sum") == 0 ? sum : NULL;
}

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("line %d: %s failed (%s)\n", __LINE__, #condition,                \
             ss_last_error());                                                 \
      return 1;                                                                \
    }                                                                          \
  } while (0)

static void count_messages(void *context, ss_log_level level,
                           const char *subject, const char *message) {
  if (level <= SS_LOG_INFO && *subject && *message)
    ++*(int *)context;
}

/* Slots of 64 bits, a null slot 0, and bf16 inputs. */
static int other_types(ss_engine *engine, int32_t slot) {
  const int64_t slots[2] = {0, slot};
  const uint16_t q[2 * DK] = {0x7fc0, 0x7fc0, 0x3f80, 0}; /* NaN NaN 1 0 */
  const uint16_t k[2 * DK] = {0x7fc0, 0x7fc0, 0x3f80, 0};
  const uint16_t v[2 * DV] = {0x7fc0, 0x7fc0, 0x7fc0, 0x3f80, 0x4000, 0};
  const float zero[2] = {0};
  uint16_t y[2 * DV];
  ss_rows rows = {.struct_size = sizeof rows,
                  .batch = 2,
                  .slots = slots,
                  .slot_type = SS_SLOT_I64,
                  .padding = SS_PADDING_UP_TO,
                  .padding_value = 0};
  ss_decode_args args = {.struct_size = sizeof args,
                         .batch = 2,
                         .slots = (const int32_t *)(const void *)slots,
                         .q = {(const float *)(const void *)q, 0},
                         .k = {(const float *)(const void *)k, 0},
                         .v = {(const float *)(const void *)v, 0},
                         .gate = {zero, 0},
                         .a_log = zero,
                         .dt_bias = zero,
                         .y = (float *)(void *)y,
                         .slot_type = SS_SLOT_I64,
                         .padding = SS_PADDING_UP_TO,
                         .input_type = SS_ELEMENT_BF16,
                         .y_type = SS_ELEMENT_BF16};
  CHECK(ss_slot_reset(engine, slot, NULL) == SS_OK);
  CHECK(ss_slot_set_rounding_key(engine, slot, 7, NULL) == SS_OK);
  CHECK(ss_begin_step_rows(engine, &rows) == SS_OK);
  CHECK(ss_decode_layer(engine, 0, &args) == SS_OK);
  CHECK(ss_end_step_rows(engine, &rows) == SS_OK);
  CHECK(y[0] == 0 && y[1] == 0 && y[2] == 0);
  CHECK(y[DV] == 0x3f80 && y[DV + 1] == 0x4000 && y[DV + 2] == 0);
  return 0;
}

/* What belongs to hand-over; the layer has the dense form, which keeps no
 * tokens. */
static int hand_over(ss_engine *engine, int32_t slot, ss_decode_args args) {
  ss_token_args tokens = {.struct_size = sizeof tokens, .tokens = 1};
  int32_t room = -1, other = -1;
  int64_t position = -1;
  size_t bytes = 0, written = 0;
  float h[DV * DK], more[DV * DK];
  ss_dense_layout layout = {.struct_size = sizeof layout};
  ss_snapshot_info info = {.struct_size = sizeof info};
  const ss_head_range range = {0, 0, 1};
  CHECK(ss_decode_layer_tokens(engine, 0, &args, &tokens) == SS_OK);
  CHECK(ss_end_step(engine, &slot, 1, NULL) == SS_OK);
  CHECK(ss_slot_position(engine, slot, &position) == SS_OK && position == 4);
  CHECK(ss_slot_rollback_room(engine, slot, &room) == SS_OK && room == 0);
  CHECK(ss_slot_rollback(engine, slot, 1, NULL) == SS_NOT_IN_BUFFER);
  CHECK(ss_slot_rollback_batch(engine, &slot, &room, 1, NULL) == SS_OK);
  CHECK(ss_slot_alloc(engine, &other, NULL) == SS_OK);
  CHECK(ss_slot_fork(engine, slot, other, NULL) == SS_OK);
  CHECK(ss_state_densify_to(engine, 0, &other, NULL, 1, h, &layout, NULL) ==
        SS_OK);
  CHECK(ss_state_densify(engine, 0, slot, more) == SS_OK);
  CHECK(memcmp(h, more, sizeof h) == 0);
  CHECK(ss_snapshot_size(engine, slot, &bytes, NULL) == SS_OK && bytes > 0);
  void *snapshot = malloc(bytes);
  CHECK(snapshot != NULL);
  CHECK(ss_snapshot_write(engine, slot, snapshot, bytes, &written, NULL) ==
            SS_OK &&
        written == bytes);
  CHECK(ss_snapshot_inspect(snapshot, bytes, &info) == SS_OK &&
        info.position == 4);
  CHECK(ss_snapshot_restore(engine, other, snapshot, bytes, NULL) == SS_OK);
  CHECK(ss_slot_reset(engine, other, NULL) == SS_OK);
  CHECK(ss_snapshot_restore_heads(engine, other, snapshot, bytes, &range, 1,
                                  NULL) == SS_OK);
  free(snapshot);
  CHECK(ss_slot_reset(engine, other, NULL) == SS_OK);
  CHECK(ss_state_init(engine, 0, &other, NULL, 1, h, &layout, NULL, NULL) ==
        SS_OK);
  CHECK(ss_slot_set_position(engine, other, 4, NULL) == SS_OK);
  CHECK(ss_state_densify(engine, 0, other, more) == SS_OK);
  CHECK(memcmp(h, more, sizeof h) == 0);
  CHECK(ss_slot_free(engine, other) == SS_OK);
  return 0;
}

static int device_memory(ss_engine *engine) {
  void *memory = NULL;
  const float in[2] = {1, 2};
  float out[2];
  CHECK(ss_device_malloc(engine, sizeof in, &memory) == SS_OK);
  CHECK(ss_device_copy_in(engine, memory, in, sizeof in, NULL) == SS_OK);
  CHECK(ss_device_copy_out(engine, out, memory, sizeof out, NULL) == SS_OK);
  CHECK(out[1] == 2);
  CHECK(ss_device_free(engine, memory) == SS_OK);
  return 0;
}

static int from_a_folder(void) {
  ss_package *package = NULL;
  CHECK(ss_package_open("no such folder", &package) == SS_NOT_FOUND);
  CHECK(package == NULL);
  return 0;
}

int main(void) {
  int lookups = 0, messages = 0;
  ss_package *package = NULL;
  CHECK(ss_package_from_memory(manifest, sizeof manifest - 1, lookup, &lookups,
                               &package) == SS_OK);
  CHECK(lookups == 1);

  ss_engine_options options;
  ss_engine_options_init(&options);
  options.slots = 3;
  options.reserved_slots = 1;
  options.max_batch = 2;
  CHECK(ss_version_number() > 0 && strlen(ss_version()) > 0);
  CHECK(ss_abi_version() == SS_ABI_VERSION);
  CHECK(ss_log_set(count_messages, &messages, SS_LOG_INFO) == SS_OK);
  ss_memory_plan plan = {sizeof plan, 0, 0, 0, 0};
  CHECK(ss_engine_plan(package, &options, &plan) == SS_OK);
  CHECK(plan.dense == 3 * DV * DK * (int64_t)sizeof(float));
  ss_engine *engine = NULL;
  CHECK(ss_engine_create(package, &options, &engine) == SS_OK);
  ss_package_close(package);
  CHECK(messages == 1);
  CHECK(ss_log_set(NULL, NULL, SS_LOG_OFF) == SS_OK);

  CHECK(ss_layer_count(engine) == 1);
  ss_layer_info info = {.struct_size = sizeof info};
  CHECK(ss_layer_get_info(engine, 0, &info) == SS_OK);
  CHECK(strcmp(info.name, "only") == 0 && info.dense_form == 1);

  int32_t slot = -1;
  CHECK(ss_slot_alloc(engine, &slot, NULL) == SS_OK);
  const float q[DK] = {1, -1}, k[DK] = {2, 1}, v[DV] = {1, 2, 3}, zero[1] = {0};
  float y[DV];
  ss_decode_args args = {.struct_size = sizeof args,
                         .batch = 1,
                         .slots = &slot,
                         .q = {q, 0},
                         .k = {k, 0},
                         .v = {v, 0},
                         .gate = {zero, 0},
                         .a_log = zero,
                         .dt_bias = zero,
                         .y = y};
  for (int step = 1; step <= 3; ++step) {
    CHECK(ss_begin_step(engine, &slot, 1, NULL) == SS_OK);
    CHECK(ss_decode_layer(engine, 0, &args) == SS_OK);
    CHECK(ss_end_step(engine, &slot, 1, NULL) == SS_OK);
    for (int r = 0; r < DV; ++r)
      CHECK(fabsf(y[r] - (float)(step * (r + 1))) < 1e-6f);
  }
  CHECK(ss_engine_tend(engine, NULL) == SS_OK);
  CHECK(ss_engine_synchronize(engine, NULL) == SS_OK);

  float state[DV * DK];
  CHECK(ss_state_densify(engine, 0, slot, state) == SS_OK);
  CHECK(state[1 * DK + 0] == 12.0f && state[2 * DK + 1] == 9.0f);

  /* A step that is given up behind a layer leaves the slot to be reset. */
  int32_t left = -1;
  size_t bytes = 0;
  CHECK(ss_cancel_step(engine, NULL) == SS_OK);
  CHECK(ss_slot_alloc(engine, &left, NULL) == SS_OK);
  args.slots = &left;
  CHECK(ss_begin_step(engine, &left, 1, NULL) == SS_OK);
  CHECK(ss_decode_layer(engine, 0, &args) == SS_OK);
  CHECK(ss_cancel_step(engine, NULL) == SS_OK);
  CHECK(ss_snapshot_size(engine, left, &bytes, NULL) == SS_INVALID_ARGUMENT);
  CHECK(ss_snapshot_size(engine, slot, &bytes, NULL) == SS_OK);
  CHECK(ss_slot_reset(engine, left, NULL) == SS_OK);
  CHECK(ss_snapshot_size(engine, left, &bytes, NULL) == SS_OK);
  CHECK(ss_slot_free(engine, left) == SS_OK);
  args.slots = &slot;

  /* The layer has no sinks. */
  CHECK(ss_engine_set_sink(engine, 0, y, DV) == SS_INVALID_ARGUMENT);
  /* A slot has an owner. */
  CHECK(ss_engine_set_first_head(engine, 0, 1) == SS_INVALID_ARGUMENT);

  ss_statistics statistics = {.struct_size = sizeof statistics};
  CHECK(ss_engine_statistics(engine, &statistics) == SS_OK);
  CHECK(statistics.dense_bytes == DV * DK * (int64_t)sizeof(float));
  ss_layer_statistics of_layer = {.struct_size = sizeof of_layer};
  CHECK(ss_layer_get_statistics(engine, 0, &of_layer) == SS_OK);
  CHECK(of_layer.states == 1 && of_layer.dense_states == 1);
  int32_t value = 77;
  CHECK(ss_state_ranks(engine, 0, slot, &value) == SS_OK && value == -1);
  CHECK(ss_state_status(engine, 0, slot, &value) == SS_OK && value == 0);
  if (hand_over(engine, slot, args) || device_memory(engine) ||
      other_types(engine, slot) || from_a_folder())
    return 1;
  CHECK(ss_slot_free(engine, slot) == SS_OK);
  CHECK(ss_slot_free(engine, slot) == SS_INVALID_ARGUMENT);
  CHECK(strlen(ss_last_error()) > 0);
  ss_engine_destroy(engine);
  return 0;
}
