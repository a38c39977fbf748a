//===- KernelBodies.h - One program of each kernel --------------*- C++ -*-===//
#ifndef SINKSTATE_REFERENCE_KERNELBODIES_H
#define SINKSTATE_REFERENCE_KERNELBODIES_H

#include "StateView.h"

namespace sinkstate::reference {

struct BatchRows {
  const float *data;
  int64_t stride;
  const float *row(int64_t b) const { return data + b * stride; }
};

/// The arguments of a decode kernel besides the state tables.
struct DecodeInputs {
  const int32_t *slots;
  BatchRows q, k, v, gate, beta;
  float *y;
  int64_t yStride;
  const float *aLog, *dtBias;
  float *dense; ///< layers of dense form
};

void decodeProgram(const LayerSpec &layer, const StateTables &tables,
                   const DecodeInputs &in, int64_t program);
void decodeDenseProgram(const LayerSpec &layer, const DecodeInputs &in,
                        int64_t program);
/// The arguments of a compact kernel besides tables and work list.
struct CompactPolicy {
  int32_t countAhead; ///< pairs in the buffer beyond `count`
  double value;
  int32_t maxRank;
};

void compactProgram(const LayerSpec &layer, const StateTables &tables,
                    int32_t state, const CompactPolicy &policy);
void densifyProgram(const LayerSpec &layer, const StateTables &tables,
                    int32_t state, int32_t countAhead, float *out);

/// The arguments of an init kernel.
struct InitArguments {
  float *factors, *weights;
  const int64_t *rowBase;
  int32_t *rank, *status;
  const float *matrices;
  const int64_t *matrixBase;
  double eps;
  int32_t maxRank;
};

/// An exact SVD, which needs no seed. `place`: of the matrix in matrixBase.
void initProgram(const LayerSpec &layer, const InitArguments &in,
                 int32_t state, int64_t place);

} // namespace sinkstate::reference

#endif
