//===- CheckedArguments.h - What every C function checks --------*- C++ -*-===//
#ifndef SINKSTATE_CAPI_CHECKEDARGUMENTS_H
#define SINKSTATE_CAPI_CHECKEDARGUMENTS_H

#include "capi/Failure.h"
#include "engine/StateEngine.h"

#include <memory>

struct ss_engine {
  std::unique_ptr<sinkstate::runtime::StateEngine> engine;
};

namespace sinkstate::runtime {

inline void require(const void *pointer, const char *name) {
  if (!pointer)
    fail(SS_INVALID_ARGUMENT, name, " is null, expected a valid pointer");
}

/// `structure` is not null and of this header's size.
template <typename Struct>
void requireStruct(const Struct *structure, const char *name,
                   const char *type) {
  require(structure, name);
  if (structure->struct_size != sizeof(Struct))
    fail(SS_INVALID_ARGUMENT, name, "->struct_size is ",
         structure->struct_size, ", expected ", sizeof(Struct),
         ": set it to sizeof(", type, ") of this library's header");
}

inline void requireBatch(const ss_engine *engine, const int32_t *slots,
                         int32_t batch) {
  require(engine, "engine");
  if (batch < 1)
    fail(SS_INVALID_ARGUMENT, "batch is ", batch, ", expected at least 1");
  require(slots, "slots");
}

} // namespace sinkstate::runtime

#endif
