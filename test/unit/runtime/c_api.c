/* The C API from C11: a package in memory whose one kernel is written here, an
 * engine, a slot, three tokens and the state they leave. */
#include "sinkstate/sinkstate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DV = 3, DK = 2 };

static const char manifest[] =
    "{\"format\": \"sinkstate-package\", \"version\": 1, \"abi\": 1,"
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

int main(void) {
  int lookups = 0;
  ss_package *package = NULL;
  CHECK(ss_package_from_memory(manifest, sizeof manifest - 1, lookup, &lookups,
                               &package) == SS_OK);
  CHECK(lookups == 1);

  ss_engine_options options;
  ss_engine_options_init(&options);
  options.slots = 2;
  ss_memory_plan plan = {sizeof plan, 0, 0, 0};
  CHECK(ss_engine_plan(package, &options, &plan) == SS_OK);
  CHECK(plan.dense == 2 * DV * DK * (int64_t)sizeof(float));
  ss_engine *engine = NULL;
  CHECK(ss_engine_create(package, &options, &engine) == SS_OK);
  ss_package_close(package);

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
  CHECK(ss_engine_synchronize(engine, NULL) == SS_OK);

  float state[DV * DK];
  CHECK(ss_state_densify(engine, 0, slot, state) == SS_OK);
  CHECK(state[1 * DK + 0] == 12.0f && state[2 * DK + 1] == 9.0f);

  ss_statistics statistics = {.struct_size = sizeof statistics};
  CHECK(ss_engine_statistics(engine, &statistics) == SS_OK);
  CHECK(statistics.dense_bytes == DV * DK * (int64_t)sizeof(float));
  CHECK(ss_slot_free(engine, slot) == SS_OK);
  CHECK(ss_slot_free(engine, slot) == SS_INVALID_ARGUMENT);
  CHECK(strlen(ss_last_error()) > 0);
  ss_engine_destroy(engine);
  return 0;
}
