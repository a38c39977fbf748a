//===- DecodeArguments.h - From ss_decode_args to kernel arguments -*- C++ -*-//
#ifndef SINKSTATE_ENGINE_DECODEARGUMENTS_H
#define SINKSTATE_ENGINE_DECODEARGUMENTS_H

#include "package/Manifest.h"

#include "sinkstate/sinkstate.h"

namespace sinkstate::runtime {

/// Checks what can be told without reading the arrays; throws
/// SS_INVALID_ARGUMENT.
void checkDecodeArguments(const LayerManifest &layer,
                          const ss_decode_args &args);

/// Sets the values of the decode arguments that come from the caller.
void bindDecodeArguments(const LayerManifest &layer,
                         const ss_decode_args &args, ArgumentValues &values);

} // namespace sinkstate::runtime

#endif
