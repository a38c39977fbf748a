//===- RowOrder.h - The active rows of a state come first -------*- C++ -*-===//
#ifndef SINKSTATE_CONSOLIDATION_ROWORDER_H
#define SINKSTATE_CONSOLIDATION_ROWORDER_H

#include <cstdint>
#include <vector>

namespace sinkstate::consolidation {

/// Brings the `active` rows of largest weight to the front of `count` rows of
/// `width` floats; otherwise the order stays. Ties go to the lower index. The
/// weights are finite.
void largestFirst(float *rows, float *weights, int32_t count, int64_t width,
                  int32_t active);

} // namespace sinkstate::consolidation

#endif
