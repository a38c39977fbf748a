/* The table of device routines that generated CPU code calls. Shared by the
 * compiler (which needs the order) and the runtime (which fills it in).
 * See docs/interfaces.md section 2 for what each routine does. */
#ifndef SINKSTATE_ROUTINES_H
#define SINKSTATE_ROUTINES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever the table, a signature or what a routine does changes. */
#define SS_ABI_VERSION 4u

/* Status bits that routines return and that states keep in `status`. */
#define SS_STATUS_NOT_FINITE 1
#define SS_STATUS_ILL_CONDITIONED 2 /* routines only: orthogonalise once more */
#define SS_STATUS_NOT_CONVERGED 4
#define SS_STATUS_TIGHTENED 8 /* rows dropped to stay within max_rank */
/* A dense state of f16 has left the range in which the type keeps digits, and has
 * stayed dense: beyond it is infinite, with SS_STATUS_NOT_FINITE. */
#define SS_STATUS_OUT_OF_RANGE 16

/* What init kernels keep: at most SS_INIT_MOST_COMPONENTS, and of a matrix whose
 * smaller side is less, as many as whole blocks fit (all below one block). What
 * has more above the threshold they call dense (rank -1). Their vectors are
 * float32, whose rounding is far below the relative weight SS_INIT_LEAST_EPS; for
 * smaller ones the runtime takes exact SVDs on the host. */
#define SS_INIT_BLOCK 16
#define SS_INIT_MOST_COMPONENTS 48
#define SS_INIT_LEAST_EPS 0x1p-13

/* Most rows of a matrix for ss_gram_svd. It needs room for m + SS_GRAM_ROOM
 * doubles. */
#define SS_GRAM_MOST_ROWS 128
#define SS_GRAM_ROOM 64

typedef struct ss_routine_table {
  uint32_t abi_version; /* SS_ABI_VERSION */
  uint32_t size;        /* number of pointers that follow */
  int32_t (*ss_orthogonalize)(int32_t m, double *gram, double *t);
  int32_t (*ss_core_svd)(int32_t m, double *c, double *xt, double *sigma,
                         double *yt);
  int32_t (*ss_gram_svd)(int32_t m, double *gram, double *sigma, double *room,
                         double share);
} ss_routine_table;

/* Entry point of a CPU kernel: programs [begin, end); args[i] points to the
 * value of argument i. */
typedef void (*ss_cpu_kernel)(const void *const *args,
                              const ss_routine_table *routines, int64_t begin,
                              int64_t end);

#ifdef __cplusplus
}
#endif
#endif
