//===- SnapshotFormatTest.cpp - What each version of the format says ------===//

#include "EngineUnderTest.h"
#include "SnapshotChecks.h"

#include "capi/Failure.h"
#include "engine/Sinks.h"
#include "handover/Snapshot.h"
#include "handover/SnapshotFields.h"
#include "handover/SnapshotFormat.h"
#include "hash/Crc32c.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

using namespace sinkstate;
using namespace sinkstate::test;
namespace format = sinkstate::runtime::snapshot;
using runtime::LayerImage;
using runtime::SlotImage;
using runtime::Storage;

namespace {

using Bytes = std::vector<std::byte>;

Bytes written(const SlotImage &image) {
  Bytes bytes(runtime::snapshotBytes(image));
  runtime::writeSnapshot(image, bytes);
  return bytes;
}

std::string refusalOf(const Bytes &bytes, ss_result expected) {
  try {
    (void)runtime::readSnapshot(bytes);
  } catch (const runtime::Failure &failure) {
    EXPECT_EQ(failure.code(), expected);
    return failure.what();
  }
  return "accepted";
}

/// Random numbers that a storage has.
std::vector<float> numbersOf(Storage storage, int64_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.3f);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &x : values)
    x = normal(random);
  std::vector<std::byte> stored(size_t(count * elementBytes(storage)) + 1);
  storeElements(storage, stored.data(), values.data(), count);
  loadElements(storage, values.data(), stored.data(), count);
  return values;
}

/// A layer of heads of these ranks, with two buffered pairs.
LayerImage layerOf(Storage storage, std::vector<int32_t> ranks,
                   std::vector<uint64_t> sinks = {}) {
  LayerImage layer;
  layer.shape = {"kda", 3, int32_t(ranks.size()), 1, 5, 6, false, true};
  layer.storage = storage;
  layer.count = 2;
  for (int32_t rank : ranks)
    layer.heads.push_back({rank, rank == 3 ? 8 : 0, 11, 2});
  layer.sinks = std::move(sinks);
  layer.rows = numbersOf(storage, layer.storedFloats());
  layer.weights = numbersOf(Storage::F32, layer.components());
  layer.bufferK = numbersOf(Storage::F32, 2 * 6);
  layer.bufferU = numbersOf(Storage::F32, layer.shape.heads * 2 * 5);
  layer.bufferG = numbersOf(Storage::F32, layer.shape.heads * 2 * 6);
  return layer;
}

SlotImage imageOf(std::vector<LayerImage> layers) {
  SlotImage image;
  image.position = 1234567890123;
  image.roundingKey = 0x123456789abcdef0;
  image.layers = std::move(layers);
  return image;
}

void expectEqual(const LayerImage &a, const LayerImage &b) {
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.storage, b.storage);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.sinks, b.sinks);
  EXPECT_EQ(a.saysSinks, b.saysSinks);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.bufferK, b.bufferK);
  EXPECT_EQ(a.bufferU, b.bufferU);
  EXPECT_EQ(a.bufferG, b.bufferG);
  EXPECT_EQ(a.dense, b.dense);
}

LayerImage denseLayer(Storage storage) {
  LayerImage layer;
  layer.shape = {"gdn", 4, 2, 2, 5, 6, true, false};
  layer.storage = storage;
  layer.dense = numbersOf(storage, 2 * 5 * 6);
  return layer;
}

TEST(SnapshotFormat, EveryStorageAndFormComesBack) {
  const SlotImage image = imageOf(
      {layerOf(Storage::F32, {3, -1, 0}), layerOf(Storage::F16, {-1, 2}),
       layerOf(Storage::BF16, {3, 0}, {17, 0}), denseLayer(Storage::BF16),
       layerOf(Storage::FP8, {3, 5}, {0, ~uint64_t(0)}),
       denseLayer(Storage::F32)});
  const Bytes bytes = written(image);
  const SlotImage again = runtime::readSnapshot(bytes);
  EXPECT_EQ(again.position, image.position);
  EXPECT_EQ(again.roundingKey, image.roundingKey);
  ASSERT_EQ(again.layers.size(), image.layers.size());
  for (size_t i = 0; i < image.layers.size(); ++i) {
    SCOPED_TRACE(i);
    expectEqual(again.layers[i], image.layers[i]);
  }
  EXPECT_EQ(written(again), bytes);
}

// Elements as they are stored, not f32: a row of 11 elements.
TEST(SnapshotFormat, RowsTakeTheBytesOfTheirStorage) {
  const std::pair<Storage, size_t> bytesOf[] = {
      {Storage::F32, 4}, {Storage::F16, 2}, {Storage::BF16, 2},
      {Storage::FP8, 1}};
  const size_t none = written(imageOf({layerOf(Storage::F32, {0})})).size();
  for (const auto &[storage, bytes] : bytesOf)
    EXPECT_EQ(written(imageOf({layerOf(storage, {24})})).size() - none,
              24 * 11 * bytes + 24 * 4);
}

/// Integer `at` bytes into the content of the section of this tag, the first one.
template <typename T>
Bytes withField(Bytes bytes, const char (&tag)[5], size_t at, T value) {
  size_t offset = format::header::size;
  while (runtime::getInteger<uint32_t>(bytes.data() + offset) !=
         format::tagOf(tag))
    offset += format::section::size +
              format::padded(size_t(runtime::getInteger<uint64_t>(
                  bytes.data() + offset + format::section::bytes)));
  runtime::putInteger(bytes.data() + offset + format::section::size + at, value);
  repairChecksums(bytes);
  return bytes;
}

TEST(SnapshotFormat, WhatAStorageCannotHoldIsDamage) {
  const Bytes rows = written(imageOf({layerOf(Storage::F16, {-1})}));
  EXPECT_EQ(refusalOf(withField(rows, "LAYR", format::layer::storage, 4),
                      SS_VERSION_MISMATCH),
            "the snapshot stores its rows in format 4, expected 0 (f32) to 3 "
            "(fp8): use the library that wrote it");
  EXPECT_EQ(refusalOf(withField(rows, "LAYR", format::layer::storage,
                                format::layer::storageFP8),
                      SS_MALFORMED_SNAPSHOT),
            "the snapshot is damaged: a state of 8 bits is dense, expected "
            "factors");
  EXPECT_EQ(refusalOf(withField(written(imageOf({denseLayer(Storage::F16)})),
                                "LAYR", format::layer::storage,
                                format::layer::storageFP8),
                      SS_MALFORMED_SNAPSHOT),
            "the snapshot is damaged: a layer has dense states of 8 bits, "
            "expected factors");
}

TEST(SnapshotFormat, ASinkNeedsARow) {
  const Bytes bytes = written(imageOf({layerOf(Storage::F32, {3, 0}, {17, 0})}));
  EXPECT_EQ(refusalOf(withField(bytes, "SINK", 8, uint64_t(1)),
                      SS_MALFORMED_SNAPSHOT),
            "the snapshot is damaged: a state of rank 0 has a sink, expected "
            "none without a row");
  EXPECT_EQ(refusalOf(withField(bytes, "HEAD", format::head::rank, -1),
                      SS_MALFORMED_SNAPSHOT),
            "the snapshot is damaged: a state of rank -1 has a sink, expected "
            "none without a row");
}

/// The sections of a snapshot, each with its header and padding.
std::vector<Bytes> sectionsOf(const Bytes &bytes) {
  std::vector<Bytes> sections;
  for (auto at = bytes.begin() + format::header::size; at != bytes.end();) {
    const auto size = format::section::size +
                      format::padded(size_t(runtime::getInteger<uint64_t>(
                          &*at + format::section::bytes)));
    sections.emplace_back(at, at + std::ptrdiff_t(size));
    at += std::ptrdiff_t(size);
  }
  return sections;
}

Bytes joined(const Bytes &header, const std::vector<Bytes> &sections) {
  Bytes all(header.begin(), header.begin() + format::header::size);
  for (const Bytes &section : sections)
    all.insert(all.end(), section.begin(), section.end());
  runtime::putInteger(all.data() + format::header::sections,
                      uint32_t(sections.size()));
  repairChecksums(all);
  return all;
}

TEST(SnapshotFormat, SinksComeBehindHeadsAndOnce) {
  const Bytes bytes = written(imageOf({layerOf(Storage::F32, {3}, {17})}));
  const std::vector<Bytes> sections = sectionsOf(bytes); // LAYR HEAD SINK ..
  std::vector<Bytes> twice = sections;
  twice.insert(twice.begin() + 3, sections[2]);
  std::vector<Bytes> early = sections, late = sections;
  std::swap(early[1], early[2]);
  std::swap(late[2], late[3]);
  for (const std::vector<Bytes> &wrong : {twice, early, late})
    EXPECT_EQ(refusalOf(joined(bytes, wrong), SS_MALFORMED_SNAPSHOT),
              "the snapshot is damaged: section 'SINK' out of order");
  EXPECT_EQ(joined(bytes, sections), bytes);
}

/// Of two heads, the second one's SVD under way.
SlotImage pendingImage(std::vector<uint64_t> sinks = {}) {
  LayerImage layer = layerOf(Storage::F32, {3, 2}, std::move(sinks));
  layer.heads[1].svdDue = true;
  return imageOf({layer});
}

TEST(SnapshotFormat, PositionsHaveABound) {
  SlotImage image = imageOf({layerOf(Storage::F32, {1})});
  image.position = int64_t(1) << 62;
  EXPECT_EQ(runtime::readSnapshot(written(image)).position, image.position);
  ++image.position;
  EXPECT_EQ(refusalOf(written(image), SS_MALFORMED_SNAPSHOT),
            "the snapshot is damaged: position 4611686018427387905, expected at "
            "most 2^62");
}

TEST(SnapshotFormat, SaysWhatIsPending) {
  for (const std::vector<uint64_t> &sinks :
       {std::vector<uint64_t>(), std::vector<uint64_t>{17, 0}}) {
    const SlotImage image = pendingImage(sinks);
    const Bytes bytes = written(image);
    EXPECT_EQ(
        runtime::getInteger<uint16_t>(bytes.data() + format::header::minor), 2);
    const SlotImage again = runtime::readSnapshot(bytes);
    expectEqual(again.layers[0], image.layers[0]);
    EXPECT_EQ(written(again), bytes);
    // Libraries that do not know it go on without.
    const std::vector<Bytes> sections = sectionsOf(bytes);
    const Bytes &pending = sections[sinks.empty() ? 2 : 3];
    EXPECT_EQ(std::string(reinterpret_cast<const char *>(pending.data()), 4),
              "PEND");
    EXPECT_EQ(runtime::getInteger<uint32_t>(pending.data() +
                                            format::section::flags),
              0u);
  }
  // Where nothing is, the format is that of libraries before it.
  const Bytes without = written(imageOf({layerOf(Storage::F32, {3, 2})}));
  EXPECT_EQ(
      runtime::getInteger<uint16_t>(without.data() + format::header::minor), 1);
}

TEST(SnapshotFormat, WhatIsPendingIsChecked) {
  const Bytes bytes = written(pendingImage({17, 0}));
  EXPECT_EQ(refusalOf(withField(bytes, "PEND", 4, uint32_t(2)),
                      SS_MALFORMED_SNAPSHOT),
            "the snapshot is damaged: section 'PEND' says 2, expected 0 or 1");
  const std::vector<Bytes> sections = sectionsOf(bytes); // .. HEAD SINK PEND ..
  std::vector<Bytes> shorter = sections;
  runtime::putInteger(shorter[3].data() + format::section::bytes, uint64_t(4));
  std::fill(shorter[3].begin() + format::section::size + 4, shorter[3].end(),
            std::byte(0));
  EXPECT_EQ(refusalOf(joined(bytes, shorter), SS_MALFORMED_SNAPSHOT),
            "the snapshot is damaged: section 'PEND' has 4 bytes, expected 8");
  std::vector<Bytes> twice = sections, early = sections, late = sections;
  twice.insert(twice.begin() + 3, sections[3]);
  std::swap(early[1], early[3]);
  std::swap(late[3], late[4]);
  for (const std::vector<Bytes> &wrong : {twice, early, late})
    EXPECT_NE(refusalOf(joined(bytes, wrong), SS_MALFORMED_SNAPSHOT)
                  .find("out of order"),
              std::string::npos);
}

// A later minor version may have more in its header and in LAYR.
TEST(SnapshotVersions, ALongerHeaderIsRead) {
  const SlotImage image = imageOf({layerOf(Storage::F16, {3, -1})});
  Bytes bytes = written(image);
  bytes.insert(bytes.begin() + format::header::size, 8, std::byte(0xa5));
  runtime::putInteger(bytes.data() + format::header::minor, uint16_t(2));
  runtime::putInteger(bytes.data() + format::header::headerBytes,
                      uint32_t(format::header::size + 8));
  runtime::putInteger(bytes.data() + format::header::totalBytes,
                      uint64_t(bytes.size()));
  runtime::putInteger(bytes.data() + format::header::checksum,
                      crc32c(bytes.data(), format::header::checksum));
  expectEqual(runtime::readSnapshot(bytes).layers[0], image.layers[0]);
}

TEST(SnapshotVersions, ALongerLayerIsRead) {
  const SlotImage image = imageOf({layerOf(Storage::BF16, {3}, {9})});
  const Bytes bytes = written(image);
  std::vector<Bytes> sections = sectionsOf(bytes);
  sections[0].insert(sections[0].begin() + format::section::size +
                         format::layer::size,
                     8, std::byte(0x5a));
  runtime::putInteger(sections[0].data() + format::section::bytes,
                      uint64_t(format::layer::size + 8));
  expectEqual(runtime::readSnapshot(joined(bytes, sections)).layers[0],
              image.layers[0]);
}

// Format 1.0 had no SINK: its first rows may be anything.
TEST(SnapshotVersions, OfTheFirstFormatSayNothingOfSinks) {
  SlotImage image = imageOf({layerOf(Storage::F32, {3, 0})});
  Bytes bytes = written(image);
  EXPECT_EQ(runtime::getInteger<uint16_t>(bytes.data() + format::header::minor),
            1);
  runtime::putInteger(bytes.data() + format::header::minor, uint16_t(0));
  repairChecksums(bytes);
  const SlotImage old = runtime::readSnapshot(bytes);
  EXPECT_FALSE(old.layers[0].saysSinks);
  EXPECT_EQ(written(old), bytes);
}

// --- Into engines ------------------------------------------------------------

/// An engine of one layer of form sink, fixed rank 4. Reference kernels know
/// components and no sinks, so that nothing is compacted here.
struct SinkEngine {
  SinkEngine()
      : kernels({layer()}),
        package(Package::fromMemory(withASinkForm(kernels.manifest(), layer()),
                                    &KernelSet::lookup, &kernels)),
        engine(package, optionsFor(1)), slot(-1) {}

  static LayerSpec layer() {
    LayerSpec layer = gdnLayer(2, 1, 6, 5);
    layer.policyKind = "fixed";
    layer.policyValue = layer.active = layer.buffer = 4;
    return layer;
  }
  /// The first head has a mean value, the other none.
  void start() {
    engine.setSink(0, meansOfSnapshots(layer()));
    slot = engine.allocateSlot();
  }
  ss_result restore(const Bytes &bytes) {
    return ss_snapshot_restore(engine.get(), slot, bytes.data(), bytes.size(),
                               nullptr);
  }

  KernelSet kernels;
  Package package;
  Engine engine;
  int32_t slot;
};

/// What an engine of the same layer in factors, fixed rank `rank`, writes after
/// `tokens` tokens.
Bytes factors(int32_t tokens, int32_t rank = 4) {
  LayerSpec layer = SinkEngine::layer();
  layer.policyValue = layer.active = layer.buffer = rank;
  EngineUnderTest test({layer});
  DrivenRequest request = test.request(4);
  for (int32_t token = 0; token < tokens; ++token)
    test.driver.step({&request});
  return test.engine.snapshot(request.slot);
}

TEST(SinkSnapshots, AnEmptySinkComesFirst) {
  SinkEngine to;
  to.start();
  const Bytes bytes = factors(6);
  const SlotImage before = runtime::readSnapshot(bytes);
  ASSERT_EQ(to.restore(bytes), SS_OK) << ss_last_error();
  const SlotImage after = runtime::readSnapshot(to.engine.snapshot(to.slot));
  const LayerImage &was = before.layers[0], &is = after.layers[0];
  ASSERT_EQ(was.heads[0].rank, 4);
  EXPECT_EQ(is.heads[0].rank, 5);
  EXPECT_EQ(is.heads[1].rank, was.heads[1].rank);
  EXPECT_NE(is.sinks.at(0), 0u);
  EXPECT_EQ(is.sinks.at(1), 0u);
  // [c | vbar / |vbar|], c = 0, the weight too; the rest as it was.
  const std::vector<float> sink = {0, 0, 0, 0, 0, 0.6f, 0, 0.8f, 0, 0, 0};
  EXPECT_EQ(std::vector<float>(is.rows.begin(), is.rows.begin() + 11), sink);
  EXPECT_EQ(is.weights[0], 0);
  EXPECT_EQ(std::vector<float>(is.rows.begin() + 11, is.rows.end()), was.rows);
  EXPECT_EQ(std::vector<float>(is.weights.begin() + 1, is.weights.end()),
            was.weights);
  EXPECT_EQ(is.bufferU, was.bufferU);
}

TEST(SinkSnapshots, OfTheFirstFormatAreRefusedWhereASinkIsExpected) {
  SinkEngine to;
  to.start();
  Bytes bytes = factors(6);
  runtime::putInteger(bytes.data() + format::header::minor, uint16_t(0));
  repairChecksums(bytes);
  EXPECT_EQ(to.restore(bytes), SS_FOREIGN_SNAPSHOT);
  EXPECT_STREQ(ss_last_error(),
               "the snapshot does not say whether head 0 of layer 'layer0' has "
               "a sink, expected one that does (format 1.1): write it with a "
               "newer library");
  // Before the first compaction no row can be one.
  bytes = factors(2);
  runtime::putInteger(bytes.data() + format::header::minor, uint16_t(0));
  repairChecksums(bytes);
  EXPECT_EQ(to.restore(bytes), SS_OK) << ss_last_error();
}

// Without mean values every row is content, whatever version says so.
TEST(SinkSnapshots, OfTheFirstFormatAreReadWhereNoneIsExpected) {
  SinkEngine to;
  to.slot = to.engine.allocateSlot();
  Bytes bytes = factors(6);
  runtime::putInteger(bytes.data() + format::header::minor, uint16_t(0));
  repairChecksums(bytes);
  ASSERT_EQ(to.restore(bytes), SS_OK) << ss_last_error();
  EXPECT_EQ(runtime::readSnapshot(to.engine.snapshot(to.slot)).layers[0].rows,
            runtime::readSnapshot(bytes).layers[0].rows);
}

// A dense head comes in factors, all of which are content.
TEST(SinkSnapshots, DenseHeadsGetAnEmptySinkToo) {
  SinkEngine to;
  to.start();
  SlotImage image = runtime::readSnapshot(factors(6));
  LayerImage &layer = image.layers[0];
  // A matrix of rank 1 in the first head, column after column.
  std::vector<float> matrix;
  for (int k = 0; k < 5; ++k)
    for (int v = 0; v < 6; ++v)
      matrix.push_back(float((k + 1) * (v + 1)));
  const auto first = layer.heads[0].storedFloats(layer.shape);
  layer.rows.erase(layer.rows.begin(), layer.rows.begin() + first);
  layer.weights.erase(layer.weights.begin(),
                      layer.weights.begin() + layer.heads[0].rank);
  layer.rows.insert(layer.rows.begin(), matrix.begin(), matrix.end());
  layer.heads[0].rank = -1;
  const Bytes bytes = written(image);
  ASSERT_EQ(to.restore(bytes), SS_OK) << ss_last_error();
  const SlotImage after = runtime::readSnapshot(to.engine.snapshot(to.slot));
  EXPECT_EQ(after.layers[0].heads[0].rank, 2); // the sink and one component
  EXPECT_EQ(after.layers[0].weights[0], 0);
  EXPECT_NEAR(after.layers[0].weights[1], std::sqrt(55.0 * 91.0), 1e-3);
}

TEST(SinkSnapshots, MoreThanTheFixedRankIsRefused) {
  SinkEngine to;
  to.start();
  const Bytes bytes = factors(6, 5);
  ASSERT_EQ(runtime::readSnapshot(bytes).layers[0].heads[0].rank, 5);
  EXPECT_EQ(to.restore(bytes), SS_FOREIGN_SNAPSHOT);
  EXPECT_NE(std::string(ss_last_error()).find(
                "has a state of rank 6 in layer 'layer0', expected at most 5 in "
                "this engine: restore it with a graph of a larger fixed rank"),
            std::string::npos)
      << ss_last_error();
}

} // namespace
