/* FakeCuda.h - A CUDA driver and an NVRTC without a GPU
 *
 * A shared library that the runtime opens in place of libcuda.so.1 and
 * libnvrtc.so: device memory is host memory, a kernel is a function that the
 * test registers, a captured stream records launches with the values of their
 * parameters, and calls that CUDA forbids during a capture fail and are
 * counted. Everything runs at once on the calling thread (but for fake_shuffle),
 * one call at a time whatever threads make them. In a process that registers no kernels every
 * kernel is there and does nothing.
 */
#ifndef SINKSTATE_UNIT_FAKECUDA_H
#define SINKSTATE_UNIT_FAKECUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs a kernel; parameters as for cuLaunchKernel. */
typedef void (*fake_kernel)(void *context, void *const *parameters,
                            unsigned blocks);

/* Back to one GPU, no kernels, no planned failures. */
void fake_reset(void);
void fake_set_version(int version);
void fake_set_device_count(int count);
/* Compute capability, 9.0 at first. */
void fake_set_capability(int major, int minor);
void fake_set_memory_limit(size_t bytes);
/* Of memory that is mapped, a multiple of 4096; 0: it cannot be mapped. */
void fake_set_granularity(size_t bytes);
/* cuGetProcAddress does not find this function. */
void fake_hide(const char *symbol);
/* The call of this name that comes after `skip` others fails with `error`;
 * sticky: and so does every call after it. */
void fake_fail(const char *symbol, int error, int skip, int sticky);
/* Failures that have not happened yet do not happen. */
void fake_fail_no_more(void);

/* From now on other threads than this one wait in calls of this function, or
 * launches of this kernel, until it is released. */
void fake_hold(const char *name);
void fake_release(const char *name);
/* Whether another thread waits in it, after so many milliseconds at most. */
int fake_is_waited_in(const char *name, int milliseconds);

/* A kernel with `count` parameters of these sizes. */
void fake_add_kernel(const char *name, const size_t *sizes, size_t count,
                     fake_kernel run, void *context);

/* How often a function was called since fake_reset. */
int fake_calls(const char *symbol);
/* Calls made while a stream was captured that CUDA forbids there. */
int fake_forbidden_calls(void);
/* Live allocations, pinned ones included, modules, streams, events and retained
 * contexts. */
int fake_live_objects(void);
size_t fake_live_bytes(void);
/* Of the last launch. */
unsigned fake_last_blocks(void);
unsigned fake_last_threads(void);
unsigned fake_last_shared(void);

/* Blocks, threads of one, and attributes (that it begins beside the end of the
   kernel before it) of the last launch of this kernel from here on. */
void fake_watch(const char *kernel);
unsigned fake_watched_blocks(void);
unsigned fake_watched_threads(void);
unsigned fake_watched_attributes(void);

/* From now on nothing runs until somebody waits for it, and then in a random order
 * of those that streams, events and captures allow; graphs likewise. 0: everything
 * runs when it is queued, again. A process begins with the seed SS_FAKE_SHUFFLE of
 * its environment, where there is one. */
void fake_shuffle(unsigned seed);

/* The names of the kernels that run from here on, in their order, a line each;
 * what is captured runs when it is replayed. */
void fake_log(int logs);
const char *fake_logged(void);

/* Sources that the fake NVRTC has compiled in this process. */
int fake_nvrtc_compilations(void);
/* The architecture of the last one, "sm_90a"; valid until the next. */
const char *fake_nvrtc_architecture(void);
/* From now on compilations fail with this nvrtcResult and log; 0: no more. */
void fake_nvrtc_fail(int result, const char *log);
/* What it says of itself when it is opened, 13.0 at first. */
void fake_nvrtc_set_version(int major, int minor);
/* From now on a compilation goes on when so many have begun together, or fails
 * after ten seconds; 0: each goes on at once. */
void fake_nvrtc_meet(int compilations);

#ifdef __cplusplus
}
#endif
#endif
