//===- SnapshotChecks.h - What any bytes must do to the reader --*- C++ -*-===//
#ifndef SINKSTATE_UNIT_SNAPSHOTCHECKS_H
#define SINKSTATE_UNIT_SNAPSHOTCHECKS_H

#include <cstddef>
#include <span>
#include <vector>

namespace sinkstate::test {

/// Sets every checksum that can be found to what it should be, so that damage
/// reaches the checks behind them.
void repairChecksums(std::vector<std::byte> &bytes);

/// Reads the bytes as they are and with their checksums repaired. Whatever is
/// read is written again and must come out the same, and restored where it
/// fits. Ends the process where something is wrong.
void checkReader(std::span<const std::byte> bytes);

} // namespace sinkstate::test

#endif
