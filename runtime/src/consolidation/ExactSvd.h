//===- ExactSvd.h - Exact SVD of one state on the host --------*- C++ -*-===//
//
// Consolidation of stored components and the factors of a dense state, both by
// an exact SVD in double precision. Works on plain memory, keeps no state, and
// may be called from any number of threads at once.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONSOLIDATION_EXACTSVD_H
#define SINKSTATE_CONSOLIDATION_EXACTSVD_H

#include <cstdint>

namespace sinkstate::consolidation {

enum class SvdStatus {
  ok,
  notFinite,   ///< NaN or inf in the input, or a weight too large for f32
  notConverged ///< the SVD failed
};

/// Which components are kept: those of weight at least
/// max(eps, 2^-22) * max(largest, s_0), s_0 the largest singular value found.
struct Truncation {
  double eps = 0;
  /// The state's largest weight where only part of a state is given.
  double largest = 0;
};

struct SvdResult {
  SvdStatus status = SvdStatus::ok;
  int32_t rank = 0; ///< components written; meaningless unless ok
};

/// Replaces `count` components by the fewest that are equal to them up to what
/// the truncation drops: orthonormal on both sides, weights descending, in
/// place. Row i is `[v_i | u_i]`, dk + dv floats at rows + i * (dk + dv). The
/// rows need not be orthonormal or independent. Unless the status is ok nothing
/// is written.
SvdResult consolidate(float *rows, float *weights, int32_t count, int32_t dk,
                      int32_t dv, const Truncation &truncation);

/// Writes the components of a dense state: dk rows of dv floats, row c being
/// column c of H. rows and weights have room for min(dk, dv) components, laid
/// out as above. Unless the status is ok nothing is written.
SvdResult factorize(const float *dense, int32_t dk, int32_t dv,
                    const Truncation &truncation, float *rows, float *weights);

} // namespace sinkstate::consolidation
#endif
