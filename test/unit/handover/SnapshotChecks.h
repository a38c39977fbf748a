//===- SnapshotChecks.h - What any bytes must do to the reader --*- C++ -*-===//
#ifndef SINKSTATE_UNIT_SNAPSHOTCHECKS_H
#define SINKSTATE_UNIT_SNAPSHOTCHECKS_H

#include "ModelSpec.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sinkstate::test {

/// The layers of the stored snapshots: gdn, kda, and gdn of dense form.
std::vector<reference::LayerSpec> layersOfSnapshots();

/// The manifest of a set of reference kernels whose first layer, of policy fixed,
/// is of form sink. The kernels know components and no sinks: such an engine can
/// take and give states, and must compact none.
std::string withASinkForm(std::string manifest,
                          const reference::LayerSpec &layer);

/// Mean values for that layer: its first head's is not zero.
std::vector<float> meansOfSnapshots(const reference::LayerSpec &layer);

/// Sets every checksum that can be found to what it should be, so that damage
/// reaches the checks behind them.
void repairChecksums(std::vector<std::byte> &bytes);

/// Reads the bytes as they are and with their checksums repaired. Whatever is
/// read is written again and must come out the same, and restored where it
/// fits. Ends the process where something is wrong.
void checkReader(std::span<const std::byte> bytes);

} // namespace sinkstate::test

#endif
