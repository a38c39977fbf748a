//===- FuzzReplayTest.cpp - Stored snapshots, and thousands of bad ones ---===//

#include "HandOverUnderTest.h"
#include "SnapshotChecks.h"

#include "handover/Snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

using Bytes = std::vector<std::byte>;

std::filesystem::path folder() {
  return std::filesystem::path(SS_SOURCE_DIR) / "test/unit/handover/snapshots";
}

Bytes contentsOf(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto *begin = reinterpret_cast<const std::byte *>(text.data());
  return Bytes(begin, begin + text.size());
}

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(folder()))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// A few random edits: bits, integers that lie at edges, lengths.
void mutate(Bytes &bytes, std::mt19937_64 &random) {
  const size_t edits = 1 + random() % 4;
  for (size_t edit = 0; edit < edits && !bytes.empty(); ++edit) {
    const size_t at = random() % bytes.size();
    switch (random() % 6) {
    case 0:
      bytes[at] ^= std::byte(1 << (random() % 8));
      break;
    case 1:
      bytes[at] = std::byte(random());
      break;
    case 2: { // an aligned integer
      static constexpr uint32_t edges[] = {0,          1,          ~0u,
                                           0x7fffffff, 0x80000000, 1u << 16};
      const uint32_t value = edges[random() % std::size(edges)];
      const size_t place = at / 4 * 4;
      for (size_t i = 0; i < 4 && place + i < bytes.size(); ++i)
        bytes[place + i] = std::byte(value >> (8 * i));
      break;
    }
    case 3:
      bytes.resize(at);
      break;
    case 4:
      bytes.insert(bytes.begin() + std::ptrdiff_t(at), 1 + random() % 40,
                   std::byte(random()));
      break;
    case 5: { // one part over another
      const size_t from = random() % bytes.size();
      const size_t size =
          std::min<size_t>(random() % 64, bytes.size() - std::max(at, from));
      std::copy_n(Bytes(bytes).begin() + std::ptrdiff_t(from), size,
                  bytes.begin() + std::ptrdiff_t(at));
      break;
    }
    }
  }
}

// Files of format 1.0 and 1.1: later libraries read them.
TEST(StoredSnapshots, AreReadAndWrittenAgain) {
  size_t read = 0;
  for (const auto &path : corpus()) {
    if (path.extension() != ".snapshot")
      continue;
    const Bytes bytes = contentsOf(path);
    const runtime::SlotImage image = runtime::readSnapshot(bytes);
    Bytes again(runtime::snapshotBytes(image));
    runtime::writeSnapshot(image, again);
    EXPECT_EQ(again, bytes) << path;
    ++read;
  }
  EXPECT_GE(read, 8u);
}

TEST(SnapshotFuzzing, StoredSnapshotsAndTheirMutantsAreHarmless) {
  std::mt19937_64 random(20260101);
  for (const auto &path : corpus()) {
    const Bytes bytes = contentsOf(path);
    ASSERT_FALSE(bytes.empty()) << path;
    checkReader(bytes);
    for (int i = 0; i < 2000; ++i) {
      Bytes mutant = bytes;
      mutate(mutant, random);
      checkReader(mutant);
    }
  }
}

} // namespace
