#include "SnapshotChecks.h"

#include "EngineUnderTest.h"

#include "capi/Failure.h"
#include "handover/Snapshot.h"
#include "handover/SnapshotFields.h"
#include "handover/SnapshotFormat.h"
#include "hash/Crc32c.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sinkstate::test {
namespace {

namespace format = runtime::snapshot;
using Bytes = std::vector<std::byte>;

void mustHold(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "snapshot reader: %s\n", what);
  std::abort();
}

/// The model that the stored snapshots are of.
Engine &engineOfSnapshots() {
  static EngineUnderTest test(layersOfSnapshots());
  return test.engine;
}

/// The same with sinks in its first layer.
Engine &engineWithSinks() {
  static KernelSet kernels([] {
    std::vector<LayerSpec> layers = layersOfSnapshots();
    layers[0].policyKind = "fixed";
    layers[0].policyValue = layers[0].active = layers[0].buffer = 8;
    return layers;
  }());
  static Package package = Package::fromMemory(
      withASinkForm(kernels.manifest(), kernels.layers()[0]),
      &KernelSet::lookup, &kernels);
  static Engine engine(package, optionsFor(1));
  static const bool given = [] {
    engine.setSink(0, meansOfSnapshots(kernels.layers()[0]));
    return true;
  }();
  (void)given;
  return engine;
}

void read(const Bytes &bytes) {
  try {
    const runtime::SlotImage image = runtime::readSnapshot(bytes);
    // Only its own version is written as it was read.
    Bytes again(runtime::snapshotBytes(image));
    runtime::writeSnapshot(image, again);
    const runtime::SlotImage second = runtime::readSnapshot(again);
    mustHold(second.layers.size() == image.layers.size() &&
                 second.position == image.position,
             "what was written again reads differently");
    Bytes third(runtime::snapshotBytes(second));
    runtime::writeSnapshot(second, third);
    mustHold(third == again, "writing is not stable");
  } catch (const runtime::Failure &failure) {
    const std::string message = failure.what();
    mustHold(!message.empty() && message.find('\n') == std::string::npos,
             "an error is not one line");
  }
}

void use(Engine &engine, int32_t slot) {
  (void)engine.densify(0, slot);
  (void)engine.snapshot(slot);
  engine.resetSlot(slot);
}

/// By both calls, the latter with all heads.
void restore(Engine &engine, int32_t slot, const Bytes &bytes) {
  if (ss_snapshot_restore(engine.get(), slot, bytes.data(), bytes.size(),
                          nullptr) == SS_OK)
    use(engine, slot);
  if (ss_snapshot_restore_heads(engine.get(), slot, bytes.data(), bytes.size(),
                                nullptr, 0, nullptr) == SS_OK)
    use(engine, slot);
}

void restore(const Bytes &bytes) {
  static const int32_t plain = engineOfSnapshots().allocateSlot();
  restore(engineOfSnapshots(), plain, bytes);
  static const int32_t sink = engineWithSinks().allocateSlot();
  restore(engineWithSinks(), sink, bytes);
}

} // namespace

std::vector<LayerSpec> layersOfSnapshots() {
  std::vector<LayerSpec> layers = {gdnLayer(2, 1, 4, 8), kdaLayer(1, 1, 8, 4),
                                   gdnLayer(1, 1, 4, 4)};
  layers[2].denseForm = true;
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i].name = "layer" + std::to_string(i);
  return layers;
}

std::string withASinkForm(std::string manifest, const LayerSpec &layer) {
  nlohmann::json json = nlohmann::json::parse(manifest);
  json["layers"][0]["form"] = "sink";
  json["layers"][0]["rank"] = layer.rank() + 1;
  return json.dump();
}

std::vector<float> meansOfSnapshots(const LayerSpec &layer) {
  std::vector<float> means(size_t(layer.valueFloats()));
  means[0] = 3;
  means[2] = 4;
  return means;
}

void repairChecksums(Bytes &bytes) {
  using namespace format;
  if (bytes.size() < header::size)
    return;
  std::byte *top = bytes.data();
  runtime::putInteger(top + header::totalBytes, uint64_t(bytes.size()));
  runtime::putInteger(top + header::checksum, crc32c(top, header::checksum));
  size_t offset = header::size;
  while (bytes.size() - offset >= section::size) {
    std::byte *at = top + offset;
    const auto size = runtime::getInteger<uint64_t>(at + section::bytes);
    const size_t left = bytes.size() - offset - section::size;
    if (size <= left)
      runtime::putInteger(at + section::checksum,
                          crc32c(at + section::size, size_t(size)));
    runtime::putInteger(at + section::headerChecksum,
                        crc32c(at, section::headerChecksum));
    if (size > left || padded(size_t(size)) > left)
      return;
    offset += section::size + padded(size_t(size));
  }
}

void checkReader(std::span<const std::byte> bytes) {
  Bytes copy(bytes.begin(), bytes.end());
  copy.reserve(1); // data() is never null
  read(copy);
  repairChecksums(copy);
  read(copy);
  restore(copy);
}

} // namespace sinkstate::test
