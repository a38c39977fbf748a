/* FakeProfiler.h - A profiler that counts ranges
 *
 * A shared library as NVTX_INJECTION64_PATH names it, and, with the functions of
 * NVTX 2, as SS_NVTX does.
 */
#ifndef SINKSTATE_UNIT_FAKEPROFILER_H
#define SINKSTATE_UNIT_FAKEPROFILER_H

#ifdef __cplusplus
extern "C" {
#endif

/* Ranges of this name that have been pushed, on any thread; NULL: all. */
int fake_profiler_pushed(const char *name);
/* Ranges that have ended. */
int fake_profiler_popped(void);
/* Ends without a beginning on their thread. */
int fake_profiler_unbalanced(void);
/* Ranges by way of the functions of NVTX 2. */
int fake_profiler_old(void);
/* Attachments so far, and what the next ones answer. */
int fake_profiler_attached(void);
void fake_profiler_refuse(int refuse);

#ifdef __cplusplus
}
#endif
#endif
