//===- SlotImage.h - Everything of a slot, in host memory -------*- C++ -*-===//
//
// What moves between engines: the states of all layers of one request, free of
// pools, blocks and devices. Engines export and import it; the snapshot format
// writes and reads it.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_HANDOVER_SLOTIMAGE_H
#define SINKSTATE_HANDOVER_SLOTIMAGE_H

#include "engine/Sinks.h"
#include "package/Manifest.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sinkstate::runtime {

/// What two layers must share for states to move between them.
struct LayerShape {
  std::string type;
  int32_t index = 0;
  int32_t heads = 0, keyHeads = 0, dv = 0, dk = 0;
  bool denseForm = false, channelDecay = false;

  static LayerShape of(const LayerManifest &layer);
  int64_t rowFloats() const { return int64_t(dk) + dv; }
  int64_t denseFloats() const { return int64_t(dk) * dv; }
  int64_t decayFloats() const { return channelDecay ? dk : 1; }
  bool operator==(const LayerShape &) const = default;
};

/// One state's entries in the tables.
struct HeadImage {
  int32_t rank = 0; ///< -1: dense
  int32_t status = 0;
  uint32_t compactions = 0; ///< since the slot was fresh
  uint32_t folds = 0;       ///< since the state went dense
  /// An exact SVD of it is due and has not landed: whoever continues with the
  /// state makes it anew, of the same rows.
  bool svdDue = false;

  int64_t components() const { return rank < 0 ? 0 : rank; }
  int64_t storedFloats(const LayerShape &shape) const {
    return rank < 0 ? shape.denseFloats() : rank * shape.rowFloats();
  }
  bool operator==(const HeadImage &) const = default;
};

/// The states of one layer. Laid out as docs/interfaces.md section 3 has them,
/// without what is not in use.
struct LayerImage {
  LayerShape shape;
  int32_t count = 0; ///< buffered pairs
  Storage storage = Storage::F32; ///< that rows and dense states come from
  std::vector<HeadImage> heads;
  /// Per head: whether its first row is a sink, by the hash of the mean value
  /// that it is of (LayerSinks); 0: it is none. Empty: none is.
  std::vector<uint64_t> sinks;
  /// Whether `sinks` can be relied on: format 1.0 has no place for it.
  bool saysSinks = true;
  std::vector<float> rows;    ///< head after head
  std::vector<float> weights; ///< head after head
  std::vector<float> bufferK; ///< [keyHeads, count, dk]
  std::vector<float> bufferU; ///< [heads, count, dv]
  std::vector<float> bufferG; ///< [heads, count] or [heads, count, dk]
  std::vector<float> dense;   ///< dense form: [heads, dv, dk]

  /// Floats that `rows` and `weights` have.
  int64_t storedFloats() const;
  int64_t components() const;
  uint64_t sinkOf(size_t head) const { return sinks.empty() ? 0 : sinks[head]; }
  /// Sets `sinks` by `heads` and the mean values that the engine has.
  void noteSinks(const LayerSinks &means);
};

struct SlotImage {
  int64_t position = 0;
  uint64_t roundingKey = 0; ///< of stochastic rounding
  std::string fingerprint; ///< of the graph, in hexadecimal; "" unknown
  std::vector<LayerImage> layers;
};

/// Heads [from, from + count) of an image become heads [to, to + count) of a
/// layer of the engine.
struct HeadRange {
  int32_t from = 0, to = 0, count = 0;
};

/// The states of some heads, and where they go in an engine's layer.
struct PlacedLayer {
  LayerImage image;
  int32_t firstHead = 0, firstKeyHead = 0;
};

/// Cuts heads out of a layer's image. The caller has checked the range; throws
/// SS_FOREIGN_SNAPSHOT where the layers do not share keys in the same way.
PlacedLayer cutHeads(const LayerImage &layer, const LayerManifest &target,
                     const HeadRange &range);

/// Dense states in factors, for engines that cannot hold them dense: any of them, or,
/// with a storage, those whose digits it does not keep (what is not finite stays).
/// Throws SS_FOREIGN_SNAPSHOT where one has no factors (NaN).
void storeInFactors(LayerImage &layer, double eps, std::optional<Storage> dense);

/// Whether a matrix may be narrowed to a storage: it keeps its digits, or has none.
bool mayBeNarrowed(Storage storage, std::span<const float> matrix);

/// Puts an empty sink in front of the rows of a head, for a layer whose states
/// begin with one. The matrix stays what it is, to the bit: the row has weight 0,
/// and the next compaction moves to it what the others have of the mean value,
/// as it does with every block (docs/state-math.md section 5).
void addEmptySink(LayerImage &layer, size_t head, const LayerSinks &sinks,
                  int64_t place);

} // namespace sinkstate::runtime

#endif
