//===- TypedBatch.h - Batches in a caller's own types -----------*- C++ -*-===//
//
// Arrays of any element type, slot type, padding rule and stride, in memory of
// an engine's device, and the calls of a step over them.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_TYPEDBATCH_H
#define SINKSTATE_REFERENCE_TYPEDBATCH_H

#include "RandomRequest.h"

#include "sinkstate/sinkstate.hpp"

#include <iosfwd>
#include <memory>

namespace sinkstate::reference {

/// What a caller's arrays are.
struct RowForm {
  int32_t inputType = SS_ELEMENT_F32, gateType = SS_ELEMENT_F32,
          yType = SS_ELEMENT_F32;
  int32_t slotType = SS_SLOT_I32;
  int32_t padding = SS_PADDING_NEGATIVE; ///< by value or up to: slot 0
  /// Elements before the first row, between rows and between tokens.
  int64_t gap = 0;
};
std::ostream &operator<<(std::ostream &stream, const RowForm &form);

/// Element types alone and mixed, with every slot type, padding rule, and rows
/// that are packed, apart, and apart by a number that divides no access.
std::vector<RowForm> allRowForms();

/// The numbers as arrays of a type hold them.
std::vector<float> roundedTo(int32_t type, const std::vector<float> &values);
TokenValues roundedTo(const RowForm &form, TokenValues values);
/// Half the distance of 1 and the next number.
double unitRoundoff(int32_t type);

class TypedBatch {
public:
  TypedBatch(Engine &engine, const std::vector<LayerSpec> &layers,
             const RowForm &form, int32_t batch, int32_t tokens = 1);
  ~TypedBatch();

  /// Negative slots become padding by the form's rule.
  void setSlots(const std::vector<int32_t> &slots);
  /// [batch, tokens]; rows of padding, which have no values, become NaN.
  void fill(size_t layer, const std::vector<TokenValues> &rows);
  /// Queues a step of these rows.
  void enqueue(void *stream = nullptr);
  /// [batch, tokens, heads, dv]. Throws where something beside was written.
  std::vector<float> y(size_t layer) const;

  /// The arguments of a layer's call.
  ss_decode_args args(size_t layer) const;
  ss_rows rows() const;

private:
  struct Array;
  struct LayerArrays;

  Engine &engine;
  const std::vector<LayerSpec> layers;
  RowForm form;
  int32_t batch, tokens;
  DeviceArray<int32_t> narrowSlots;
  DeviceArray<int64_t> wideSlots;
  std::vector<LayerArrays> arrays;
};

} // namespace sinkstate::reference

#endif
