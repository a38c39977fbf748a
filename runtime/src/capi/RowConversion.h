//===- RowConversion.h - Arrays of other types at the boundary --*- C++ -*-===//
//
// Kernels take int32 slots, negative padding and f32. What a caller has in other
// types is converted here, in memory that was allocated with the engine.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CAPI_ROWCONVERSION_H
#define SINKSTATE_CAPI_ROWCONVERSION_H

#include "engine/StateEngine.h"
#include "package/Manifest.h"

#include "sinkstate/sinkstate.h"

#include <span>
#include <vector>

namespace sinkstate::runtime {

class RowConversion {
public:
  RowConversion(const Manifest &manifest, const ss_engine_options &options);

  static int64_t bytesFor(const Manifest &manifest, int32_t maxBatch);
  int64_t bytes() const { return allBytes; }

  /// The slots as int32 with negative padding; valid until the next call.
  std::span<const int32_t> slots(const ss_rows &rows);

  /// Decodes with converted arrays. `tokens` may be null: one.
  void decode(StateEngine &engine, int32_t layer, const ss_decode_args &args,
              const ss_token_args *tokens);

private:
  struct Widths {
    int64_t key = 0, value = 0, gate = 0, beta = 0;
  };
  static Widths widthsOf(const LayerManifest &layer);
  static Widths mostOf(const Manifest &manifest);

  const LayerManifest &checkedLayer(int32_t layer) const;
  void requireRoom(int64_t rows) const;

  std::vector<LayerManifest> layers;
  int32_t maxBatch, slotCount, reservedSlots;
  int64_t allBytes;
  std::vector<int32_t> slotRows;
  std::vector<float> q, k, v, gate, beta, y;
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
