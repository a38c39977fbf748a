#include "EmulatedDevice.h"

#include "WarpEmulator.h"

#include <algorithm>
#include <limits>

#include "ss/core_svd.cuh"
#include "ss/gram_svd.cuh"
#include "ss/orthogonalize.cuh"

namespace sinkstate::test {
namespace {

/// Runs routine() in every lane and returns the status they agree on.
template <typename Routine> int32_t emulate(LaneOrder order, Routine routine) {
  int32_t status[32] = {};
  if (!runWarp(order, [&] { status[currentLane()] = routine(); }))
    return emulationFailed;
  for (int32_t other : status)
    if (other != status[0])
      return emulationFailed;
  return status[0];
}

/// Calls run with the smallest of the sizes that the compiler instantiates.
template <typename Run> int32_t withSize(int32_t m, Run run) {
  if (m <= 8)
    return run(std::integral_constant<int, 8>());
  if (m <= 16)
    return run(std::integral_constant<int, 16>());
  if (m <= 24)
    return run(std::integral_constant<int, 24>());
  if (m <= 32)
    return run(std::integral_constant<int, 32>());
  if (m <= 40)
    return run(std::integral_constant<int, 40>());
  return run(std::integral_constant<int, 64>());
}

} // namespace

namespace {

/// An m x m matrix as a kernel keeps it: room for M rows, each in its own banks;
/// NaN around it.
template <int M> struct Scratch {
  static constexpr int pitch = M % 16 == 0 ? M + 4 : M;
  double rows[M][pitch];

  Scratch(int m, const double *from = nullptr) {
    for (auto &row : rows)
      for (double &x : row)
        x = std::numeric_limits<double>::quiet_NaN();
    for (int at = 0; from && at < m * m; ++at)
      rows[at / m][at % m] = from[at];
  }
  void store(int m, double *to) const {
    for (int at = 0; at < m * m; ++at)
      to[at] = rows[at / m][at % m];
  }
};

} // namespace

int32_t emulateOrthogonalize(LaneOrder order, int32_t m, double *gram,
                             double *t) {
  return withSize(m, [&](auto size) {
    Scratch<size()> g(m, gram), factor(m);
    int32_t status =
        emulate(order, [&] { return ss::orthogonalize(m, g.rows, factor.rows); });
    g.store(m, gram);
    factor.store(m, t);
    return status;
  });
}

int32_t emulateCoreSvd(LaneOrder order, int32_t m, double *c, double *xt,
                       double *sigma, double *yt) {
  return withSize(m, [&](auto size) {
    Scratch<size()> core(m, c), left(m), right(m);
    double values[size()] = {};
    int32_t status = emulate(order, [&] {
      return ss::core_svd(m, core.rows, left.rows, values, right.rows);
    });
    left.store(m, xt);
    right.store(m, yt);
    std::copy(values, values + m, sigma);
    return status;
  });
}

namespace {

template <int W, int M>
int32_t runGramSvd(LaneOrder order, int32_t m, double *gram, double *sigma,
                   double share) {
  Scratch<M> matrix(m, gram);
  double values[M] = {}, room[M + SS_GRAM_ROOM];
  int32_t status[32 * W] = {};
  if (!runBlock(order, W, [&] {
        status[threadIdx.x] =
            ss::gram_svd<W>(m, matrix.rows, values, room, share);
      }))
    return emulationFailed;
  for (int32_t other : status)
    if (other != status[0])
      return emulationFailed;
  matrix.store(m, gram);
  std::copy(values, values + m, sigma);
  return status[0];
}

template <int M>
int32_t withWarps(LaneOrder order, int warps, int32_t m, double *gram,
                  double *sigma, double share) {
  if (warps == 1)
    return runGramSvd<1, M>(order, m, gram, sigma, share);
  if (warps == 4)
    return runGramSvd<4, M>(order, m, gram, sigma, share);
  return runGramSvd<8, M>(order, m, gram, sigma, share);
}

} // namespace

int32_t emulateGramSvd(LaneOrder order, int warps, int32_t m, double *gram,
                       double *sigma, double share) {
  if (m <= 7)
    return withWarps<7>(order, warps, m, gram, sigma, share);
  if (m <= 40)
    return withWarps<40>(order, warps, m, gram, sigma, share);
  if (m <= 80)
    return withWarps<80>(order, warps, m, gram, sigma, share);
  return withWarps<128>(order, warps, m, gram, sigma, share);
}

const ss_routine_table emulatedDevice = {
    SS_ABI_VERSION, 3,
    [](int32_t m, double *gram, double *t) {
      return emulateOrthogonalize(LaneOrder::Ascending, m, gram, t);
    },
    [](int32_t m, double *c, double *xt, double *sigma, double *yt) {
      return emulateCoreSvd(LaneOrder::Ascending, m, c, xt, sigma, yt);
    },
    [](int32_t m, double *gram, double *sigma, double *, double share) {
      return emulateGramSvd(LaneOrder::Ascending, 4, m, gram, sigma, share);
    }};

} // namespace sinkstate::test
