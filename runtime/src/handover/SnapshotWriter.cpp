//===- SnapshotWriter.cpp - A slot's image as bytes -----------------------===//

#include "handover/Snapshot.h"
#include "handover/SnapshotFields.h"
#include "handover/SnapshotFormat.h"

#include "capi/Failure.h"
#include "hash/Crc32c.h"

#include <algorithm>
#include <string_view>

namespace sinkstate::runtime {
namespace {

using namespace snapshot;

/// The sizes of a layer's sections, in the order they are written.
struct SectionPlan {
  uint32_t tag;
  size_t bytes;
  /// Null: LAYR, HEAD, SINK and PEND.
  const std::vector<float> *floats = nullptr;
  Storage storage = Storage::F32;
};

bool isPending(const LayerImage &image) {
  return std::any_of(image.heads.begin(), image.heads.end(),
                     [](const HeadImage &head) { return head.svdDue; });
}

std::vector<SectionPlan> sectionsOf(const LayerImage &image) {
  const LayerShape &shape = image.shape;
  const auto heads = size_t(shape.heads);
  std::vector<SectionPlan> plan = {{kLayer, layer::size}};
  auto floats = [&](uint32_t tag, int64_t count, const std::vector<float> &of,
                    Storage storage = Storage::F32) {
    plan.push_back(
        {tag, size_t(count * elementBytes(storage)), &of, storage});
  };
  if (shape.denseForm) {
    floats(kDense, shape.heads * shape.denseFloats(), image.dense,
           image.storage);
    return plan;
  }
  plan.push_back({kHeads, heads * head::size});
  if (!image.sinks.empty())
    plan.push_back({kSinks, heads * kSinkBytes});
  if (isPending(image))
    plan.push_back({kPending, heads * kPendingBytes});
  floats(kRows, image.storedFloats(), image.rows, image.storage);
  floats(kWeights, image.components(), image.weights);
  const int64_t pairs = image.count;
  floats(kBufferK, shape.keyHeads * pairs * shape.dk, image.bufferK);
  floats(kBufferU, shape.heads * pairs * shape.dv, image.bufferU);
  floats(kBufferG, shape.heads * pairs * shape.decayFloats(), image.bufferG);
  return plan;
}

int32_t numberOf(Storage storage) {
  switch (storage) {
  case Storage::F16:
    return layer::storageF16;
  case Storage::BF16:
    return layer::storageBF16;
  case Storage::FP8:
    return layer::storageFP8;
  case Storage::F32:
    break;
  }
  return layer::storageF32;
}

void putLayer(std::byte *at, const LayerImage &image) {
  const LayerShape &shape = image.shape;
  if (shape.type.size() >= layer::typeBytes)
    fail(SS_INTERNAL, "layer type '", shape.type, "' is longer than ",
         layer::typeBytes - 1, " bytes: report it");
  std::memcpy(at + layer::type, shape.type.data(), shape.type.size());
  putInteger(at + layer::index, shape.index);
  putInteger(at + layer::heads, shape.heads);
  putInteger(at + layer::keyHeads, shape.keyHeads);
  putInteger(at + layer::dv, shape.dv);
  putInteger(at + layer::dk, shape.dk);
  putInteger(at + layer::form,
             shape.denseForm ? layer::denseForm : layer::factored);
  putInteger(at + layer::channelDecay, int32_t(shape.channelDecay));
  putInteger(at + layer::count, image.count);
  putInteger(at + layer::storage, numberOf(image.storage));
}

void putHeads(std::byte *at, const LayerImage &image) {
  for (const HeadImage &entry : image.heads) {
    putInteger(at + head::rank, entry.rank);
    putInteger(at + head::status, entry.status);
    putInteger(at + head::compactions, entry.compactions);
    putInteger(at + head::folds, entry.folds);
    at += head::size;
  }
}

/// Writes one section and returns the end of its padding.
std::byte *putSection(std::byte *at, const SectionPlan &plan, uint32_t index,
                      const LayerImage &image) {
  std::byte *content = at + section::size;
  if (plan.tag == kLayer)
    putLayer(content, image);
  else if (plan.tag == kHeads)
    putHeads(content, image);
  else if (plan.tag == kSinks)
    for (size_t i = 0; i < image.sinks.size(); ++i)
      putInteger(content + i * kSinkBytes, image.sinks[i]);
  else if (plan.tag == kPending)
    for (size_t i = 0; i < image.heads.size(); ++i)
      putInteger(content + i * kPendingBytes, uint32_t(image.heads[i].svdDue));
  else
    putElements(content, *plan.floats, plan.storage);
  putInteger(at + section::tag, plan.tag);
  putInteger(at + section::layer, index);
  putInteger(at + section::bytes, uint64_t(plan.bytes));
  putInteger(at + section::flags,
             plan.tag == kPending ? uint32_t(0) : section::required);
  putInteger(at + section::checksum, crc32c(content, plan.bytes));
  putInteger(at + section::headerChecksum,
             crc32c(at, section::headerChecksum));
  return content + padded(plan.bytes);
}

/// The oldest minor version that says all of an image.
uint16_t minorVersionOf(const SlotImage &image) {
  if (!std::all_of(image.layers.begin(), image.layers.end(),
                   [](const LayerImage &layer) { return layer.saysSinks; }))
    return 0;
  return std::any_of(image.layers.begin(), image.layers.end(), isPending)
             ? kSnapshotMinor
             : 1;
}

int hexDigit(char digit) {
  constexpr std::string_view digits = "0123456789abcdef";
  return int(digits.find(digit));
}

void putFingerprint(std::byte *at, const std::string &hex) {
  if (hex.size() != 2 * header::fingerprintBytes ||
      hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    return; // unknown: zeros
  for (size_t i = 0; i < header::fingerprintBytes; ++i)
    at[i] = std::byte(16 * hexDigit(hex[2 * i]) + hexDigit(hex[2 * i + 1]));
}

} // namespace

uint64_t snapshotBytes(const SlotImage &image) {
  uint64_t bytes = header::size;
  for (const LayerImage &layer : image.layers)
    for (const SectionPlan &plan : sectionsOf(layer))
      bytes += section::size + padded(plan.bytes);
  return bytes;
}

void writeSnapshot(const SlotImage &image, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte(0));
  uint32_t sections = 0;
  std::byte *at = out.data() + header::size;
  for (size_t i = 0; i < image.layers.size(); ++i)
    for (const SectionPlan &plan : sectionsOf(image.layers[i])) {
      at = putSection(at, plan, uint32_t(i), image.layers[i]);
      ++sections;
    }
  std::byte *top = out.data();
  std::memcpy(top + header::magic, kMagic, sizeof kMagic);
  putInteger(top + header::major, kSnapshotMajor);
  putInteger(top + header::minor, minorVersionOf(image));
  putInteger(top + header::headerBytes, uint32_t(header::size));
  putInteger(top + header::totalBytes, uint64_t(at - top));
  putInteger(top + header::position, image.position);
  putInteger(top + header::roundingKey, image.roundingKey);
  putFingerprint(top + header::fingerprint, image.fingerprint);
  putInteger(top + header::layers, uint32_t(image.layers.size()));
  putInteger(top + header::sections, sections);
  putInteger(top + header::checksum, crc32c(top, header::checksum));
}

} // namespace sinkstate::runtime
