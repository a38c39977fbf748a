/* SinkState compiler: from a model state graph to kernels.
 *
 * The C API of the compiler library, which links LLVM and MLIR. An engine that
 * loads packages made ahead of time needs sinkstate.h alone.
 *
 * Threads: every function may be called from any thread; a compiled model is
 * immutable.
 */
#ifndef SINKSTATE_COMPILER_H
#define SINKSTATE_COMPILER_H

#include "sinkstate/sinkstate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ss_compiled_model ss_compiled_model;

/* One line about the last failure of a compiler call in this thread: the
 * diagnostics with their lines in the graph. "" after none. */
SS_API const char *ss_compiler_last_error(void);

/* Compiles the text of a graph (one ss.model) for this processor. `name` stands
 * for the text in diagnostics. SS_INVALID_ARGUMENT: the graph is wrong. */
SS_API ss_result ss_compile_graph(const char *text, size_t size,
                                  const char *name, ss_compiled_model **out);
/* A package over the compiled kernels. The model must outlive the package and
 * the engines made from it. */
SS_API ss_result ss_compiled_package(ss_compiled_model *model,
                                     ss_package **out);
SS_API void ss_compiled_model_destroy(ss_compiled_model *model);

/* Compiles the text of a graph into a package folder that ss_package_open
 * takes: CPU code for every instruction-set level, CUDA C++ sources. The folder
 * appears complete or not at all. It is new, empty or a package, which is then
 * replaced; anything else is SS_INVALID_ARGUMENT and stays as it is. */
SS_API ss_result ss_write_package(const char *text, size_t size,
                                  const char *name, const char *folder);

#ifdef __cplusplus
}
#endif
#endif
