//===- DecodeArguments.h - From ss_decode_args to kernel arguments -*- C++ -*-//
#ifndef SINKSTATE_ENGINE_DECODEARGUMENTS_H
#define SINKSTATE_ENGINE_DECODEARGUMENTS_H

#include "package/Manifest.h"

#include "sinkstate/sinkstate.h"

#include <cstdint>

namespace sinkstate::runtime {

/// Checks what can be told without reading the arrays; throws
/// SS_INVALID_ARGUMENT.
void checkDecodeArguments(const LayerManifest &layer,
                          const ss_decode_args &args);

/// Floats that a GPU's kernels read at once.
constexpr int64_t kVectorFloats = 4;

/// Whether rows of f32 begin where kernels can read them by `unit` floats at a time,
/// or by as many as divide a head's elements. A stride of 0: packed.
bool beginAtUnits(const void *data, int64_t stride, int64_t headElements,
                  int64_t unit);

/// Checks that a GPU's kernels can read the rows where they are; throws
/// SS_INVALID_ARGUMENT.
void checkRowAddresses(const LayerManifest &layer, const ss_decode_args &args);

/// Sets the values of the decode arguments that come from the caller.
void bindDecodeArguments(const LayerManifest &layer,
                         const ss_decode_args &args, ArgumentValues &values);

} // namespace sinkstate::runtime

#endif
