//===- RowConversion.h - Arrays of other types at the boundary --*- C++ -*-===//
//
// Kernels take int32 slots, negative padding and f32. What a caller has in other
// types is checked here and converted by the engine's device, in memory that was
// allocated with the engine.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CAPI_ROWCONVERSION_H
#define SINKSTATE_CAPI_ROWCONVERSION_H

#include "engine/RowConverter.h"
#include "engine/StateEngine.h"
#include "package/Manifest.h"

#include "sinkstate/sinkstate.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sinkstate::runtime {

class RowConversion {
public:
  RowConversion(StateEngine &engine, const ss_engine_options &options);

  static int64_t bytesFor(const Manifest &manifest, int32_t maxBatch);
  int64_t bytes() const { return places.bytes; }

  /// The slots that a step begins with, as int32 with negative padding, in memory of
  /// the device: a list of their own, which is written again behind all that the
  /// step queues, ended or not. `engine` ends what is left of the step before.
  std::span<const int32_t> slotsToBegin(StateEngine &engine, const ss_rows &rows);
  /// The same within a step and at its end; valid until others are converted there.
  std::span<const int32_t> slots(const ss_rows &rows);
  /// A step has begun with these rows; null: with slots that were not converted.
  /// Until it ends slots() and decode() convert the same rows no more, on devices
  /// where they stay as they are.
  void stepBegins(const ss_rows *rows);
  void stepEnds() { step.reset(); }

  /// Whether arrays of f32 lie where the device's kernels do not read them.
  bool hasToMove(int32_t layer, const ss_decode_args &args,
                 const ss_token_args *tokens) const;

  /// Decodes with converted arrays. `tokens` may be null: one.
  void decode(StateEngine &engine, int32_t layer, const ss_decode_args &args,
              const ss_token_args *tokens);

private:
  struct Widths {
    int64_t key = 0, value = 0, gate = 0, beta = 0;
  };
  static Widths widthsOf(const LayerManifest &layer);
  static Widths mostOf(const Manifest &manifest);
  /// Where things are in the staging memory, in bytes.
  struct Places {
    /// Of the step that has begun, and of a call with another array: what the former
    /// plans is beside its calls.
    int64_t stepSlots = 0, callSlots = 0;
    int64_t q = 0, k = 0, v = 0, gate = 0, beta = 0, y = 0;
    int64_t bytes = 0;
  };
  static Places placesFor(const Manifest &manifest, int32_t maxBatch);

  const LayerManifest &checkedLayer(int32_t layer) const;
  void convertSlots(const ss_rows &rows, int64_t place) const;
  std::span<const int32_t> listAt(int64_t place, int32_t batch) const {
    return {staged<int32_t>(place), size_t(batch)};
  }
  void requireRoom(int32_t batch, int32_t tokens) const;
  bool hasConverted(const ss_rows &rows) const;
  ss::CallerSlots checkedSlots(const ss_rows &rows) const;
  /// An array of a call.
  struct Input {
    const char *name;
    ss_input *rows;
    int64_t *tokenStride;
    int64_t width, headElements;
    int32_t type;
    int64_t place;
  };
  std::array<Input, ss::kMostInputs> inputsOf(const LayerManifest &layer,
                                              ss_decode_args &args,
                                              ss_token_args &tokens) const;
  bool isToConvert(const Input &input, int32_t batch, int32_t tokens) const;
  bool yIsToConvert(const LayerManifest &layer, ss_decode_args &args,
                    ss_token_args &tokens) const;
  void takeInputs(const LayerManifest &layer, ss_decode_args &args,
                  ss_token_args &tokens);
  template <typename T> T *staged(int64_t place) const {
    return reinterpret_cast<T *>(converter->staging() + place);
  }

  std::vector<LayerManifest> layers;
  int32_t maxBatch, slotCount, reservedSlots;
  Places places;
  std::unique_ptr<RowConverter> converter;
  /// Whether slots are staged once a step. Not where parts of a step may be captured
  /// (compaction_streams -1): a replay of one finds the slots of its own time.
  bool oncePerStep;
  std::optional<ss_rows> step; ///< whose slots are staged
};

/// Whether arrays have to be converted before the engine takes them.
bool needsConversion(const ss_rows &rows);
bool needsConversion(const ss_decode_args &args);

/// Decodes directly where nothing has to be converted. `conversion` may be
/// null: the engine was created without max_batch.
void decodeConverted(StateEngine &engine, RowConversion *conversion,
                     int32_t layer, const ss_decode_args &args,
                     const ss_token_args *tokens);

/// The conversion, or an error that says how to get one.
RowConversion &requireConversion(RowConversion *conversion);

} // namespace sinkstate::runtime

#endif
