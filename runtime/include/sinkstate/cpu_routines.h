/* The CPU twins of the device routines, as the table that CPU kernels take.
 * The same code exists once per instruction-set level; results are the same
 * from run to run on one level, but may differ in the last bits between
 * levels. */
#ifndef SINKSTATE_CPU_ROUTINES_H
#define SINKSTATE_CPU_ROUTINES_H

#include "sinkstate/routines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table for the best level this processor has; chosen once. */
const ss_routine_table *ss_cpu_routines(void);

/* The table of one level: "baseline" (x86-64-v2, or whatever the compiler
 * aims at elsewhere), "x86-64-v3" or "x86-64-v4". Null where this processor
 * lacks the level or the library was built without it. */
const ss_routine_table *ss_cpu_routines_for(const char *isa);

#ifdef __cplusplus
}
#endif
#endif
