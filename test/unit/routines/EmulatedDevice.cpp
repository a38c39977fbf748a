#include "EmulatedDevice.h"

#include "WarpEmulator.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ss/add_gram.cuh"
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

/// Vectors as a kernel keeps them, rows 20 or 8 banks apart; the packed matrix at
/// the end. NaN around it.
template <int M> struct Vectors {
  static constexpr int pitch = M % 32 == 16 ? M + 4 : M % 32 == 0 ? M + 8 : M;
  alignas(16) float rows[M + 1][pitch];

  Vectors(int m, const float *packed) {
    for (auto &row : rows)
      for (float &x : row)
        x = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(this->packed(m), packed, bytes(m));
  }
  static size_t bytes(int m) { return size_t(m * (m + 1)) * sizeof(float); }
  double *packed(int m) { return ss::gram::packed_of(m, rows); }
  void storePacked(int m, float *to) { std::memcpy(to, packed(m), bytes(m)); }
  void storeRows(int m, float *to) const {
    for (int at = 0; at < m * m; ++at)
      to[at] = rows[at / m][at % m];
  }
};

/// Runs routine(vectors) in every thread of a block of W warps.
template <int W, int M, typename Routine>
int32_t runOnVectors(LaneOrder order, Vectors<M> &vectors, Routine routine) {
  int32_t status[32 * W] = {};
  if (!runBlock(order, W,
                [&] { status[threadIdx.x] = routine(vectors.rows); }))
    return emulationFailed;
  for (int32_t other : status)
    if (other != status[0])
      return emulationFailed;
  return status[0];
}

/// Calls run with the number of warps and the smallest size that is compiled.
template <typename Run> int32_t withWarpsAndSize(int warps, int32_t m, Run run) {
  auto withRows = [&](auto count) {
    if (m <= 7)
      return run(count, std::integral_constant<int, 7>());
    if (m <= 40)
      return run(count, std::integral_constant<int, 40>());
    if (m <= 80)
      return run(count, std::integral_constant<int, 80>());
    return run(count, std::integral_constant<int, 128>());
  };
  switch (warps) {
  case 1:
    return withRows(std::integral_constant<int, 1>());
  case 2:
    return withRows(std::integral_constant<int, 2>());
  case 4:
    return withRows(std::integral_constant<int, 4>());
  default:
    return withRows(std::integral_constant<int, 8>());
  }
}

} // namespace

int32_t emulateGramSvd(LaneOrder order, int warps, int32_t m, float *vectors,
                       double *sigma, double share) {
  return withWarpsAndSize(warps, m, [&](auto count, auto size) {
    Vectors<size()> memory(m, vectors);
    double values[size()] = {}, room[size() + SS_GRAM_ROOM];
    const int32_t status =
        runOnVectors<count(), size()>(order, memory, [&](auto &rows) {
          return ss::gram_svd<count()>(m, rows, values, room, share);
        });
    memory.storeRows(m, vectors);
    std::copy(values, values + m, sigma);
    return status;
  });
}

int32_t emulateAddGram(LaneOrder order, int warps, int32_t m, int32_t width,
                       bool columnsAreRows, bool isFirst, const float *chunk,
                       float *vectors) {
  constexpr int most = 16;
  return withWarpsAndSize(warps, m, [&](auto count, auto size) {
    Vectors<size()> memory(m, vectors);
    float columns[most][size()], rows[size()][most];
    for (int k = 0; k < width; ++k)
      for (int i = 0; i < m; ++i)
        columns[k][i] = rows[i][k] =
            columnsAreRows ? chunk[k * m + i] : chunk[i * width + k];
    const int32_t status =
        runOnVectors<count(), size()>(order, memory, [&](auto &to) {
          return columnsAreRows
                     ? ss::add_gram<count()>(m, width, 1, isFirst, columns, to)
                     : ss::add_gram<count()>(m, width, 0, isFirst, rows, to);
        });
    memory.storePacked(m, vectors);
    return status;
  });
}

const ss_routine_table emulatedDevice = {
    SS_ABI_VERSION, 4,
    [](int32_t m, double *gram, double *t) {
      return emulateOrthogonalize(LaneOrder::Ascending, m, gram, t);
    },
    [](int32_t m, double *c, double *xt, double *sigma, double *yt) {
      return emulateCoreSvd(LaneOrder::Ascending, m, c, xt, sigma, yt);
    },
    [](int32_t m, float *vectors, double *sigma, double *, double share) {
      return emulateGramSvd(LaneOrder::Ascending, 4, m, vectors, sigma, share);
    },
    [](int32_t m, int32_t width, int32_t columnsAreRows, int32_t isFirst,
       float *chunk, float *vectors) {
      return emulateAddGram(LaneOrder::Ascending, 4, m, width, columnsAreRows,
                            isFirst, chunk, vectors);
    }};

} // namespace sinkstate::test
