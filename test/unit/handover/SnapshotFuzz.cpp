//===- SnapshotFuzz.cpp - libFuzzer's entry to the snapshot reader --------===//
//
// Built by scripts/fuzz-snapshot.sh; the test suite runs the same checks over
// the same corpus in FuzzReplayTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "SnapshotChecks.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sinkstate::test::checkReader(
      {reinterpret_cast<const std::byte *>(data), size});
  return 0;
}
