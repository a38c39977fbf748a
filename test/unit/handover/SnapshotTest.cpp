//===- SnapshotTest.cpp - Slots as bytes, and back ------------------------===//

#include "HandOverUnderTest.h"

#include "handover/Snapshot.h"
#include "handover/SnapshotFields.h"
#include "handover/SnapshotFormat.h"
#include "hash/Crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace sinkstate;
using namespace sinkstate::test;
namespace format = sinkstate::runtime::snapshot;

namespace {

using Bytes = std::vector<std::byte>;

std::vector<LayerSpec> withADenseLayer(int32_t draft) {
  std::vector<LayerSpec> layers =
      draft > 0 ? threeLayers(draft, 0.1) : mixedLayers(0.1);
  layers.push_back(gdnLayer(2, 2, 8, 16));
  layers.back().name = "layer3";
  layers.back().denseForm = true;
  return layers;
}

/// The error of a restore, which must leave the slot as it was.
std::string refusal(EngineUnderTest &test, int32_t slot, const Bytes &bytes,
                    ss_result expected) {
  const Seen before = look(test, slot);
  std::string message = "accepted";
  try {
    test.engine.restore(slot, bytes);
  } catch (const Exception &e) {
    EXPECT_EQ(e.code(), expected) << e.what();
    message = e.what();
  }
  EXPECT_EQ(look(test, slot), before);
  return message;
}

/// Replaces bytes of the header and its checksum.
template <typename T> Bytes withHeader(Bytes bytes, size_t offset, T value) {
  runtime::putInteger(bytes.data() + offset, value);
  runtime::putInteger(bytes.data() + format::header::checksum,
                      crc32c(bytes.data(), format::header::checksum));
  return bytes;
}

// At every phase of the schedules, with partial buffers, factored, dense and
// dense-form states: the restored request and the original stay the same.
TEST(Snapshot, ARestoredSlotContinuesWithTheBitsOfTheOriginal) {
  for (int32_t tokens : {0, 1, 3, 8, 13, 24, 37, 70, -6, -14, -24}) {
    const int32_t draft = tokens < 0 ? 0 : 2;
    tokens = std::abs(tokens);
    EngineUnderTest from(withADenseLayer(draft), optionsFor(1));
    EngineUnderTest to(withADenseLayer(draft), optionsFor(3));
    const int32_t a = from.engine.allocateSlot();
    (void)decode(from, a, 11, 0, tokens, true);
    const Bytes bytes = from.engine.snapshot(a);
    (void)to.engine.allocateSlot();
    const int32_t b = to.engine.allocateSlot();
    (void)decode(to, b, 5, 0, 29, true); // what it held does not matter
    to.engine.restore(b, bytes);
    EXPECT_EQ(look(to, b), look(from, a)) << tokens;
    EXPECT_EQ(to.engine.snapshot(b), bytes) << tokens;
    // Consolidations and changes of form included: 100 tokens.
    EXPECT_EQ(decode(to, b, 11, tokens, 100, true),
              decode(from, a, 11, tokens, 100, true));
    EXPECT_EQ(look(to, b), look(from, a)) << tokens;
  }
}

TEST(Snapshot, TheRunsAboveHaveDenseStatesAndFactors) {
  EngineUnderTest test(withADenseLayer(2));
  const int32_t slot = test.engine.allocateSlot();
  bool dense = false, factored = false;
  for (int64_t token = 0; token < 70; ++token) {
    (void)decode(test, slot, 11, token, 1, true);
    for (int32_t layer = 0; layer < 3; ++layer)
      for (int32_t rank : test.engine.ranks(layer, slot)) {
        dense |= rank < 0;
        factored |= rank > 0;
      }
  }
  EXPECT_TRUE(dense);
  EXPECT_TRUE(factored);
  if (kConsolidates) {
    EXPECT_GT(test.engine.statistics().consolidations, 0);
  }
}

// Forks, snapshots and shares of heads carry the key of stochastic rounding; a
// fresh slot has none.
TEST(Snapshot, AndForksCarryTheKeyOfRounding) {
  EngineUnderTest test(threeLayers(0), optionsFor(4));
  std::vector<int32_t> slots;
  for (int i = 0; i < 4; ++i)
    slots.push_back(test.engine.allocateSlot());
  (void)decode(test, slots[0], 1, 0, 5, true);
  test.engine.setRoundingKey(slots[0], 0x123456789abcdef0);
  const Bytes bytes = test.engine.snapshot(slots[0]);
  test.engine.fork(slots[0], slots[1]);
  test.engine.restore(slots[2], bytes);
  test.engine.restoreHeads(slots[3], bytes, {});
  for (size_t i = 1; i < 4; ++i)
    EXPECT_EQ(test.engine.snapshot(slots[i]), bytes) << i;
  test.engine.resetSlot(slots[1]);
  (void)decode(test, slots[1], 1, 0, 5, true);
  EXPECT_NE(test.engine.snapshot(slots[1]), bytes);
}

TEST(Snapshot, DoesNotChangeTheSlot) {
  EngineUnderTest looked(threeLayers(0)), plain(threeLayers(0));
  const int32_t a = looked.engine.allocateSlot();
  const int32_t b = plain.engine.allocateSlot();
  for (int64_t token = 0; token < 40; ++token) {
    (void)looked.engine.snapshot(a);
    EXPECT_EQ(decode(looked, a, 1, token, 1), decode(plain, b, 1, token, 1));
  }
}

TEST(Snapshot, ACapacityThatIsTooSmallIsAnError) {
  EngineUnderTest test(threeLayers(0));
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 5, true);
  size_t bytes = 0, written = 7;
  check(ss_snapshot_size(test.engine.get(), slot, &bytes, nullptr));
  Bytes out(bytes);
  EXPECT_EQ(ss_snapshot_write(test.engine.get(), slot, out.data(), bytes - 1,
                              &written, nullptr),
            SS_INVALID_ARGUMENT);
  EXPECT_EQ(written, 7u);
  EXPECT_EQ(ss_snapshot_write(test.engine.get(), slot, out.data(), bytes,
                              &written, nullptr),
            SS_OK);
  EXPECT_EQ(written, bytes);
}

TEST(Snapshot, ItsHeaderCanBeInspected) {
  EngineUnderTest test(threeLayers(0));
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 5, true);
  const Bytes bytes = test.engine.snapshot(slot);
  ss_snapshot_info info = {};
  info.struct_size = sizeof info;
  check(ss_snapshot_inspect(bytes.data(), bytes.size(), &info));
  EXPECT_EQ(info.major_version, 1);
  EXPECT_EQ(info.bytes, bytes.size());
  EXPECT_EQ(info.position, 5);
  EXPECT_EQ(info.layers, 3);
  EXPECT_STREQ(info.fingerprint, ""); // the reference package has none
}

// No single damaged bit goes unnoticed, wherever it is.
TEST(SnapshotFaults, EveryFlippedBitIsRefused) {
  EngineUnderTest test({gdnLayer(1, 1, 4, 8)});
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 3, true);
  Bytes bytes = test.engine.snapshot(slot);
  for (size_t byte = 0; byte < bytes.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[byte] ^= std::byte(1 << bit);
      const ss_result result = ss_snapshot_restore(
          test.engine.get(), slot, bytes.data(), bytes.size(), nullptr);
      ASSERT_TRUE(result == SS_MALFORMED_SNAPSHOT ||
                  result == SS_VERSION_MISMATCH)
          << "byte " << byte << " bit " << bit << ": " << result;
      bytes[byte] ^= std::byte(1 << bit);
    }
  test.engine.restore(slot, bytes);
}

TEST(SnapshotFaults, EveryTruncationIsRefused) {
  EngineUnderTest test({gdnLayer(1, 1, 4, 8)});
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 3, true);
  const Bytes bytes = test.engine.snapshot(slot);
  for (size_t size = 0; size < bytes.size(); ++size) {
    // Of exactly that size, so that a sanitizer sees reads past the end.
    Bytes shorter(bytes.begin(), bytes.begin() + std::ptrdiff_t(size));
    shorter.reserve(1);
    ASSERT_EQ(ss_snapshot_restore(test.engine.get(), slot, shorter.data(),
                                  size, nullptr),
              SS_MALFORMED_SNAPSHOT)
        << size;
  }
}

TEST(SnapshotFaults, SaysWhatIsDamaged) {
  EngineUnderTest test({gdnLayer(1, 1, 4, 8)});
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 3, true);
  const Bytes good = test.engine.snapshot(slot);
  Bytes bytes = good;
  bytes[0] ^= std::byte(1);
  EXPECT_EQ(refusal(test, slot, bytes, SS_MALFORMED_SNAPSHOT),
            "these bytes do not begin as a snapshot does, expected what "
            "ss_snapshot_write wrote");
  bytes = good;
  bytes[160] ^= std::byte(1);
  EXPECT_EQ(refusal(test, slot, bytes, SS_MALFORMED_SNAPSHOT),
            "the snapshot is damaged: section 'LAYR' at byte 96 does not match "
            "its checksum");
  EXPECT_EQ(refusal(test, slot,
                    withHeader(good, format::header::major, uint16_t(2)),
                    SS_VERSION_MISMATCH),
            "the snapshot has format version 2.1, expected 1.x: restore it "
            "with the library that wrote it");
}

/// A section that this version does not know, before the first.
Bytes withUnknownSection(const Bytes &bytes, uint32_t flags) {
  Bytes section(format::section::size + 16);
  runtime::putInteger(section.data(), format::tagOf("NEW1"));
  runtime::putInteger(section.data() + format::section::layer, ~uint32_t(0));
  runtime::putInteger(section.data() + format::section::bytes, uint64_t(11));
  runtime::putInteger(section.data() + format::section::flags, flags);
  for (size_t i = 0; i < 11; ++i)
    section[format::section::size + i] = std::byte(i + 1);
  runtime::putInteger(section.data() + format::section::checksum,
                      crc32c(section.data() + format::section::size, 11));
  runtime::putInteger(section.data() + format::section::headerChecksum,
                      crc32c(section.data(), format::section::headerChecksum));
  Bytes all = bytes;
  all.insert(all.begin() + format::header::size, section.begin(),
             section.end());
  all = withHeader(all, format::header::totalBytes, uint64_t(all.size()));
  const auto sections =
      runtime::getInteger<uint32_t>(all.data() + format::header::sections);
  return withHeader(all, format::header::sections, sections + 1);
}

TEST(SnapshotVersions, ALaterMinorVersionIsRead) {
  EngineUnderTest test({gdnLayer(1, 1, 4, 8)});
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 11, true);
  const Bytes bytes = test.engine.snapshot(slot);
  const Seen original = look(test, slot);
  test.engine.resetSlot(slot);
  test.engine.restore(slot,
                      withHeader(withUnknownSection(bytes, 0),
                                 format::header::minor, uint16_t(9)));
  EXPECT_EQ(look(test, slot), original);
}

TEST(SnapshotVersions, ARequiredSectionThatIsUnknownIsRefused) {
  EngineUnderTest test({gdnLayer(1, 1, 4, 8)});
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 11, true);
  EXPECT_EQ(refusal(test, slot,
                    withUnknownSection(test.engine.snapshot(slot),
                                       format::section::required),
                    SS_VERSION_MISMATCH),
            "the snapshot needs its section 'NEW1', which this library does "
            "not know: use a newer library");
}

TEST(SnapshotFaults, OfAnotherModelIsRefused) {
  EngineUnderTest test(threeLayers(2));
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 9, true);
  auto snapshotOf = [](std::vector<LayerSpec> layers, int32_t tokens) {
    EngineUnderTest other(std::move(layers));
    const int32_t from = other.engine.allocateSlot();
    (void)decode(other, from, 2, 0, tokens, true);
    return other.engine.snapshot(from);
  };
  std::vector<LayerSpec> other = threeLayers(2);
  other.pop_back();
  EXPECT_EQ(refusal(test, slot, snapshotOf(other, 9), SS_FOREIGN_SNAPSHOT),
            "the snapshot has 2 layers, expected 3: it is of another model");
  other = threeLayers(2);
  std::swap(other[0].dv, other[0].dk);
  EXPECT_EQ(refusal(test, slot, snapshotOf(other, 9), SS_FOREIGN_SNAPSHOT),
            "the snapshot has gdn 24x16 at index 0, expected gdn 16x24 at "
            "index 0 in layer 'layer0': it is of another model");
  other = threeLayers(2);
  other[1].heads = 2;
  EXPECT_EQ(refusal(test, slot, snapshotOf(other, 9), SS_FOREIGN_SNAPSHOT),
            "the snapshot has 2 heads and 2 key heads in layer 'layer1', "
            "expected 4 and 2: take a range of them with "
            "ss_snapshot_restore_heads");
  other = threeLayers(2);
  other[0].buffer = 16;
  EXPECT_EQ(refusal(test, slot, snapshotOf(other, 15), SS_FOREIGN_SNAPSHOT),
            "the snapshot has 15 buffered pairs in layer 'layer0', expected at "
            "most 10: restore it with a graph of that buffer and draft");
}

// Full buffers are for layers that compact before the next token; where none is
// full, snapshots go both ways.
TEST(Snapshot, AFullBufferNeedsALayerThatCompactsBeforeItsTokens) {
  EngineUnderTest before(mixedLayers()), after(threeLayers(0));
  const int32_t a = before.engine.allocateSlot();
  const int32_t b = after.engine.allocateSlot();
  (void)decode(before, a, 1, 0, 14, true); // layer 2, phase 6 of 8, is due
  EXPECT_EQ(refusal(after, b, before.engine.snapshot(a), SS_FOREIGN_SNAPSHOT),
            "the snapshot has 8 buffered pairs in layer 'layer2', expected at "
            "most 7: restore it with a graph of that buffer and draft, compiled "
            "to compact this layer before its tokens");
  (void)decode(before, a, 1, 14, 1, true);
  after.engine.restore(b, before.engine.snapshot(a));
  EXPECT_EQ(decode(after, b, 1, 15, 40, true),
            decode(before, a, 1, 15, 40, true));
  before.engine.restore(a, after.engine.snapshot(b));
  EXPECT_EQ(decode(before, a, 1, 55, 40, true),
            decode(after, b, 1, 55, 40, true));
}

// A dense state meets an engine that keeps none: it comes in factors.
TEST(Snapshot, ADenseStateComesInFactorsWhereThereIsNoDenseForm) {
  ss_engine_options never = optionsFor(1);
  never.dense_fallback = 0;
  EngineUnderTest from(threeLayers(0, 1e-4)), to(threeLayers(0, 1e-4), never);
  const int32_t a = from.engine.allocateSlot(), b = to.engine.allocateSlot();
  (void)decode(from, a, 11, 0, 70, true);
  to.engine.restore(b, from.engine.snapshot(a));
  int dense = 0;
  for (int32_t layer = 0; layer < 3; ++layer) {
    const auto before = from.engine.ranks(layer, a);
    const auto after = to.engine.ranks(layer, b);
    dense += int(std::count(before.begin(), before.end(), -1));
    EXPECT_EQ(std::count(after.begin(), after.end(), -1), 0);
    const auto expected = from.engine.densify(layer, a);
    const auto actual = to.engine.densify(layer, b);
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    EXPECT_LE(std::sqrt(error), 1e-3 * std::sqrt(norm));
  }
  EXPECT_GT(dense, 0);
}

} // namespace
