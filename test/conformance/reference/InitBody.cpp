//===- InitBody.cpp - A state from a dense matrix -------------------------===//

#include "KernelBodies.h"

#include "sinkstate/routines.h"

#include <Eigen/SVD>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinkstate::reference {

void initProgram(const LayerSpec &layer, const InitArguments &in,
                 int32_t state, int64_t place) {
  const int64_t dv = layer.dv, dk = layer.dk;
  float *rows = in.factors + in.rowBase[state] * (dk + dv);
  float *weights = in.weights + in.rowBase[state];
  const float *columns = in.matrices + in.matrixBase[place];
  in.status[state] = 0;
  if (!std::all_of(columns, columns + dk * dv,
                   [](float x) { return std::isfinite(x); })) {
    std::fill_n(rows, dk + dv, 1.0f);
    weights[0] = std::numeric_limits<float>::quiet_NaN();
    in.rank[state] = 1;
    in.status[state] = SS_STATUS_NOT_FINITE;
    return;
  }
  Eigen::MatrixXd h(dv, dk);
  for (int64_t k = 0; k < dk; ++k)
    for (int64_t v = 0; v < dv; ++v)
      h(v, k) = columns[k * dv + v];
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(h, Eigen::ComputeThinU |
                                                     Eigen::ComputeThinV);
  const Eigen::VectorXd sigma = svd.singularValues();
  int64_t kept = 0;
  while (kept < sigma.size() && sigma[kept] > 0 &&
         sigma[kept] >= in.eps * sigma[0])
    ++kept;
  // As compiled kernels have it: whole blocks.
  const int64_t side = std::min(dv, dk);
  const int64_t block = std::min<int64_t>(SS_INIT_BLOCK, side);
  const int64_t most =
      std::min<int64_t>(SS_INIT_MOST_COMPONENTS, side) / block * block;
  if (kept > most) {
    in.rank[state] = -1;
    return;
  }
  kept = std::min<int64_t>(kept, in.maxRank);
  for (int64_t i = 0; i < kept; ++i) {
    for (int64_t k = 0; k < dk; ++k)
      rows[i * (dk + dv) + k] = float(svd.matrixV()(k, i));
    for (int64_t v = 0; v < dv; ++v)
      rows[i * (dk + dv) + dk + v] = float(svd.matrixU()(v, i));
    weights[i] = float(sigma[i]);
  }
  in.rank[state] = int32_t(kept);
}

} // namespace sinkstate::reference
