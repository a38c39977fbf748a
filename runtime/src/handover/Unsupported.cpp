//===- Unsupported.cpp - What a device does not do ------------------------===//

#include "capi/Failure.h"
#include "engine/StateEngine.h"

namespace sinkstate::runtime {
namespace {

[[noreturn]] void notSupported(const char *what) {
  fail(SS_NOT_SUPPORTED, what,
       " is not supported on the CUDA device: use an engine on the CPU");
}

} // namespace

void StateEngine::decodeTokens(int32_t, const ss_decode_args &,
                               const ss_token_args &) {
  notSupported("decoding several tokens in one call");
}

void StateEngine::rollback(std::span<const int32_t>, std::span<const int32_t>,
                           Stream) {
  notSupported("rollback");
}

int32_t StateEngine::rollbackRoom(int32_t) const { notSupported("rollback"); }

int64_t StateEngine::position(int32_t) const {
  notSupported("the position of a slot");
}

SlotImage StateEngine::exportSlot(int32_t, bool) {
  notSupported("a snapshot of a slot");
}

void StateEngine::importSlot(int32_t, int64_t, std::span<const PlacedLayer>,
                             Stream) {
  notSupported("restoring a slot");
}

void StateEngine::setPosition(int32_t, int64_t, Stream) {
  notSupported("setting the position of a slot");
}

void StateEngine::densifyTo(int32_t, const DenseStates &, void *, Stream) {
  notSupported("densify into a caller's layout");
}

void StateEngine::initialise(int32_t, const DenseStates &, const void *,
                             const ss_init_options &, Stream) {
  notSupported("initialising states after a prefill");
}

const Manifest &StateEngine::manifestOf() const {
  notSupported("restoring a slot");
}

bool StateEngine::holdsDense(int32_t) const { notSupported("restoring a slot"); }

int32_t StateEngine::mostComponents(int32_t) const {
  notSupported("restoring a slot");
}

} // namespace sinkstate::runtime
