//===- SnapshotReader.cpp - Bytes that nobody vouches for -----------------===//
//
// Every size is checked against what is there before it is used: what is taken
// from memory never exceeds what the snapshot would have with rows in f32.
//
//===----------------------------------------------------------------------===//

#include "handover/Counters.h"
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
using Bytes = std::span<const std::byte>;

/// Larger sizes have no meaning, and products of them could overflow.
constexpr int32_t kMostDimension = 1 << 16;
constexpr int32_t kMostHeads = 1 << 20;
constexpr int32_t kMostPairs = 1 << 10;
constexpr uint32_t kMostLayers = 1 << 16;

template <typename... Parts> [[noreturn]] void malformed(const Parts &...parts) {
  fail(SS_MALFORMED_SNAPSHOT, "the snapshot is damaged: ", parts...);
}

std::string nameOf(uint32_t tag) {
  std::string name;
  for (int i = 0; i < 4; ++i) {
    const char letter = char(tag >> (8 * i));
    name += letter >= ' ' && letter < 0x7f ? letter : '?';
  }
  return name;
}

struct Section {
  uint32_t tag = 0, layer = 0, flags = 0;
  Bytes content;
  size_t next = 0; ///< offset of the section that follows
};

/// The section at `offset`, which is checked.
Section sectionAt(Bytes all, size_t offset) {
  if (all.size() - offset < section::size)
    malformed("a section begins at byte ", offset, " of ", all.size(),
              ", expected ", section::size, " bytes of its header");
  const std::byte *at = all.data() + offset;
  if (crc32c(at, section::headerChecksum) !=
      getInteger<uint32_t>(at + section::headerChecksum))
    malformed("the header of the section at byte ", offset,
              " does not match its checksum");
  Section found;
  found.tag = getInteger<uint32_t>(at + section::tag);
  found.layer = getInteger<uint32_t>(at + section::layer);
  found.flags = getInteger<uint32_t>(at + section::flags);
  const auto bytes = getInteger<uint64_t>(at + section::bytes);
  const size_t left = all.size() - offset - section::size;
  if (bytes > left || padded(size_t(bytes)) > left)
    malformed("section '", nameOf(found.tag), "' at byte ", offset, " has ",
              bytes, " bytes, expected at most ", left);
  found.content = all.subspan(offset + section::size, size_t(bytes));
  found.next = offset + section::size + padded(size_t(bytes));
  if (crc32c(found.content.data(), found.content.size()) !=
      getInteger<uint32_t>(at + section::checksum))
    malformed("section '", nameOf(found.tag), "' at byte ", offset,
              " does not match its checksum");
  for (const std::byte *pad = found.content.data() + bytes;
       pad != all.data() + found.next; ++pad)
    if (*pad != std::byte(0))
      malformed("the padding of section '", nameOf(found.tag), "' at byte ",
                offset, " is not zero");
  return found;
}

int32_t intIn(Bytes content, size_t offset, const char *name, int32_t least,
              int32_t most) {
  const auto value = getInteger<int32_t>(content.data() + offset);
  if (value < least || value > most)
    malformed("a layer has ", name, " ", value, ", expected ", least, " to ",
              most);
  return value;
}

Storage storageOf(int32_t number) {
  switch (number) {
  case layer::storageF32:
    return Storage::F32;
  case layer::storageF16:
    return Storage::F16;
  case layer::storageBF16:
    return Storage::BF16;
  case layer::storageFP8:
    return Storage::FP8;
  }
  fail(SS_VERSION_MISMATCH, "the snapshot stores its rows in format ", number,
       ", expected 0 (f32) to 3 (fp8): use the library that wrote it");
}

LayerImage readLayer(Bytes content) {
  if (content.size() < layer::size)
    malformed("section 'LAYR' has ", content.size(), " bytes, expected ",
              layer::size);
  LayerImage image;
  LayerShape &shape = image.shape;
  const auto *type =
      reinterpret_cast<const char *>(content.data() + layer::type);
  const std::string_view field(type, layer::typeBytes);
  shape.type = field.substr(0, field.find('\0'));
  for (char letter : shape.type)
    if (letter < ' ' || letter > '~')
      malformed("a layer's type is not printable");
  shape.index = intIn(content, layer::index, "index", 0, INT32_MAX);
  shape.heads = intIn(content, layer::heads, "heads", 1, kMostHeads);
  shape.keyHeads =
      intIn(content, layer::keyHeads, "key heads", 1, shape.heads);
  if (shape.heads % shape.keyHeads != 0)
    malformed("a layer has ", shape.heads, " heads and ", shape.keyHeads,
              " key heads, expected a divisor of the heads");
  shape.dv = intIn(content, layer::dv, "dv", 1, kMostDimension);
  shape.dk = intIn(content, layer::dk, "dk", 1, kMostDimension);
  shape.denseForm = intIn(content, layer::form, "form", layer::factored,
                          layer::denseForm) == layer::denseForm;
  shape.channelDecay =
      intIn(content, layer::channelDecay, "channel decay", 0, 1) == 1;
  image.count = intIn(content, layer::count, "buffered pairs", 0, kMostPairs);
  image.storage =
      storageOf(getInteger<int32_t>(content.data() + layer::storage));
  if (image.shape.denseForm && !holdsMatrices(image.storage))
    malformed("a layer has dense states of 8 bits, expected factors");
  return image;
}

void readHeads(Bytes content, LayerImage &image) {
  if (content.size() != size_t(image.shape.heads) * head::size)
    malformed("section 'HEAD' has ", content.size(), " bytes, expected ",
              size_t(image.shape.heads) * head::size);
  image.heads.resize(size_t(image.shape.heads));
  const std::byte *at = content.data();
  for (HeadImage &entry : image.heads) {
    entry.rank = getInteger<int32_t>(at + head::rank);
    entry.status = getInteger<int32_t>(at + head::status);
    entry.compactions = getInteger<uint32_t>(at + head::compactions);
    entry.folds = getInteger<uint32_t>(at + head::folds);
    if (entry.rank < -1 || entry.rank > 4 * kMostDimension)
      malformed("a state has rank ", entry.rank,
                ", expected -1 (dense) or a number of rows");
    if (entry.rank < 0 && !holdsMatrices(image.storage))
      malformed("a state of 8 bits is dense, expected factors");
    at += head::size;
  }
}

void readSinks(Bytes content, LayerImage &image) {
  if (content.size() != image.heads.size() * kSinkBytes)
    malformed("section 'SINK' has ", content.size(), " bytes, expected ",
              image.heads.size() * kSinkBytes);
  for (size_t i = 0; i < image.heads.size(); ++i) {
    image.sinks.push_back(
        getInteger<uint64_t>(content.data() + i * kSinkBytes));
    if (image.sinks[i] != 0 && image.heads[i].rank < 1)
      malformed("a state of rank ", image.heads[i].rank,
                " has a sink, expected none without a row");
  }
  image.saysSinks = true;
}

void readPending(Bytes content, LayerImage &image) {
  if (content.size() != image.heads.size() * kPendingBytes)
    malformed("section 'PEND' has ", content.size(), " bytes, expected ",
              image.heads.size() * kPendingBytes);
  for (size_t i = 0; i < image.heads.size(); ++i) {
    const auto due =
        getInteger<uint32_t>(content.data() + i * kPendingBytes);
    if (due > 1)
      malformed("section 'PEND' says ", due, ", expected 0 or 1");
    image.heads[i].svdDue = due == 1;
  }
}

void readFloats(const Section &from, int64_t count, std::vector<float> &into,
                Storage storage = Storage::F32) {
  const auto bytes = size_t(count * elementBytes(storage));
  if (from.content.size() != bytes)
    malformed("section '", nameOf(from.tag), "' has ", from.content.size(),
              " bytes, expected ", bytes);
  into = getElements(from.content.data(), size_t(count), storage);
}

/// Reads the sections of one layer, which come in a fixed order.
class LayerReader {
public:
  explicit LayerReader(LayerImage &image) : image(image) {}

  /// The tag that has to come next; 0: none.
  uint32_t expected() const {
    return step < order().size() ? order()[step] : 0;
  }

  /// SINK and then PEND may come where ROWS is next, once.
  bool mayTake(uint32_t tag) const {
    if (expected() == kRows && !tookPending &&
        (tag == kPending || (tag == kSinks && image.sinks.empty())))
      return true;
    return tag == expected();
  }

  void take(const Section &from) {
    if (from.tag == kSinks)
      return readSinks(from.content, image);
    if (from.tag == kPending) {
      tookPending = true;
      return readPending(from.content, image);
    }
    const LayerShape &shape = image.shape;
    const int64_t pairs = image.count;
    switch (from.tag) {
    case kHeads:
      readHeads(from.content, image);
      break;
    case kRows:
      readFloats(from, image.storedFloats(), image.rows, image.storage);
      break;
    case kWeights:
      readFloats(from, image.components(), image.weights);
      break;
    case kBufferK:
      readFloats(from, shape.keyHeads * pairs * shape.dk, image.bufferK);
      break;
    case kBufferU:
      readFloats(from, shape.heads * pairs * shape.dv, image.bufferU);
      break;
    case kBufferG:
      readFloats(from, shape.heads * pairs * shape.decayFloats(),
                 image.bufferG);
      break;
    case kDense:
      readFloats(from, shape.heads * shape.denseFloats(), image.dense,
                 image.storage);
      break;
    }
    ++step;
  }

private:
  std::span<const uint32_t> order() const {
    static constexpr uint32_t factored[] = {kHeads,   kRows,    kWeights,
                                            kBufferK, kBufferU, kBufferG};
    static constexpr uint32_t dense[] = {kDense};
    if (image.shape.denseForm)
      return dense;
    return factored;
  }

  LayerImage &image;
  size_t step = 0;
  bool tookPending = false;
};

bool isKnown(uint32_t tag) {
  for (uint32_t known : {kLayer, kHeads, kRows, kWeights, kBufferK, kBufferU,
                         kBufferG, kDense, kSinks, kPending})
    if (tag == known)
      return true;
  return false;
}

void readSections(Bytes bytes, const SnapshotHeader &top, size_t offset,
                  SlotImage &image) {
  // Never moves: every layer takes so many bytes.
  image.layers.reserve(std::min<size_t>(
      size_t(top.layers), bytes.size() / (section::size + layer::size)));
  std::vector<LayerReader> last; // of the layer being read
  auto finishLayer = [&] {
    if (!last.empty() && last.back().expected() != 0)
      malformed("layer ", image.layers.size() - 1, " ends without section '",
                nameOf(last.back().expected()), "'");
    last.clear();
  };
  for (uint32_t number = 0; number < top.sections; ++number) {
    const Section section = sectionAt(bytes, offset);
    offset = section.next;
    if (!isKnown(section.tag)) {
      if (section.flags & section::required)
        fail(SS_VERSION_MISMATCH, "the snapshot needs its section '",
             nameOf(section.tag),
             "', which this library does not know: use a newer library");
      continue;
    }
    if (section.tag == kLayer) {
      finishLayer();
      if (image.layers.size() >= size_t(top.layers))
        malformed("it has more layers than the ", top.layers,
                  " of its header");
      image.layers.push_back(readLayer(section.content));
      image.layers.back().saysSinks = top.minor >= 1;
      last.emplace_back(image.layers.back());
    } else if (last.empty() || !last.back().mayTake(section.tag)) {
      malformed("section '", nameOf(section.tag), "' out of order");
    } else {
      last.back().take(section);
    }
    if (section.layer != image.layers.size() - 1)
      malformed("section '", nameOf(section.tag), "' belongs to layer ",
                section.layer, ", expected ", image.layers.size() - 1);
  }
  finishLayer();
  if (image.layers.size() != size_t(top.layers))
    malformed("it has ", image.layers.size(), " layers, expected the ",
              top.layers, " of its header");
  if (offset != bytes.size())
    malformed(bytes.size() - offset, " bytes follow its last section");
}

std::string fingerprintOf(const std::byte *at) {
  std::string hex;
  bool known = false;
  for (size_t i = 0; i < header::fingerprintBytes; ++i) {
    const auto byte = unsigned(at[i]);
    known |= byte != 0;
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return known ? hex : "";
}

} // namespace

SnapshotHeader readSnapshotHeader(Bytes bytes) {
  const std::byte *at = bytes.data();
  if (bytes.size() < header::size)
    malformed("it has ", bytes.size(), " bytes, expected at least ",
              header::size);
  if (std::memcmp(at + header::magic, kMagic, sizeof kMagic) != 0)
    fail(SS_MALFORMED_SNAPSHOT,
         "these bytes do not begin as a snapshot does, expected what "
         "ss_snapshot_write wrote");
  SnapshotHeader top;
  top.major = getInteger<uint16_t>(at + header::major);
  top.minor = getInteger<uint16_t>(at + header::minor);
  if (top.major != kSnapshotMajor)
    fail(SS_VERSION_MISMATCH, "the snapshot has format version ", top.major,
         ".", top.minor, ", expected ", kSnapshotMajor,
         ".x: restore it with the library that wrote it");
  const auto headerBytes = getInteger<uint32_t>(at + header::headerBytes);
  if (headerBytes < header::size || headerBytes > bytes.size() ||
      headerBytes % 8 != 0)
    malformed("its header has ", headerBytes, " bytes, expected ",
              header::size);
  if (crc32c(at, header::checksum) !=
      getInteger<uint32_t>(at + header::checksum))
    malformed("the header does not match its checksum");
  top.bytes = getInteger<uint64_t>(at + header::totalBytes);
  if (top.bytes != bytes.size())
    malformed("it has ", bytes.size(), " bytes, expected ", top.bytes,
              " as its header says");
  top.position = getInteger<int64_t>(at + header::position);
  if (top.position < 0)
    malformed("position ", top.position, ", expected 0 or more");
  if (top.position > kMostPosition)
    malformed("position ", top.position, ", expected at most 2^62");
  top.fingerprint = fingerprintOf(at + header::fingerprint);
  const auto layers = getInteger<uint32_t>(at + header::layers);
  if (layers < 1 || layers > kMostLayers)
    malformed(layers, " layers, expected 1 to ", kMostLayers);
  top.layers = int32_t(layers);
  top.sections = getInteger<uint32_t>(at + header::sections);
  return top;
}

SlotImage readSnapshot(Bytes bytes) {
  const SnapshotHeader top = readSnapshotHeader(bytes);
  SlotImage image;
  image.position = top.position;
  image.roundingKey =
      getInteger<uint64_t>(bytes.data() + header::roundingKey);
  image.fingerprint = top.fingerprint;
  readSections(bytes, top,
               getInteger<uint32_t>(bytes.data() + header::headerBytes),
               image);
  return image;
}

} // namespace sinkstate::runtime
