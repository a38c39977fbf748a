//===- InitCheck.cpp - Factors against known matrices ---------------------===//

#include "InitCheck.h"

#include "sinkstate/routines.h"

#include <algorithm>
#include <cmath>

using namespace sinkstate::runtime;
using namespace ss_bench;

namespace {

/// How far from the line between kept and dropped a weight may be on either
/// side, relative: as far as kept weights may be off.
constexpr double kAtTheLine = 1e-3;

void checkWeights(const double *values, int32_t found,
                  const float *foundWeights, InitResult &result) {
  for (int32_t j = 0; j < found; ++j) {
    const double error = std::fabs(foundWeights[j] - values[j]) / values[j];
    // A comparison with NaN is false: say so as infinity.
    result.weightError =
        std::isnan(error) ? HUGE_VAL : std::max(result.weightError, error);
  }
}

/// |H - found|_F over what dropping the other components costs, and rounding.
double errorOf(const Spectra &spectra, int64_t i, int32_t found,
               const float *rows, const float *weights) {
  const int64_t dv = spectra.dv, dk = spectra.dk, floats = dv * dk;
  std::vector<double> rest(spectra.columns.begin() + i * floats,
                           spectra.columns.begin() + (i + 1) * floats);
  for (int32_t j = 0; j < found; ++j) {
    const float *row = rows + j * (dk + dv);
    for (int64_t k = 0; k < dk; ++k)
      for (int64_t v = 0; v < dv; ++v)
        rest[size_t(k * dv + v)] -= double(weights[j]) * row[k] * row[dk + v];
  }
  double error = 0, dropped = 0, all = 0;
  for (double x : rest)
    error += x * x;
  for (int32_t j = 0; j < std::min(dv, dk); ++j) {
    const double square = spectra.valuesOf(i)[j] * spectra.valuesOf(i)[j];
    all += square;
    dropped += j >= found ? square : 0;
  }
  return std::sqrt(error) / (std::sqrt(dropped) + 1e-5 * std::sqrt(all));
}

void addSizes(const LayerManifest &layer, const FoundStates &found,
              InitResult &result) {
  double sum = 0, dense = 0;
  for (int32_t rank : found.ranks) {
    sum += std::max(rank, 0);
    dense += rank < 0;
  }
  const double chunk = found.chunk;
  result.denseShare = dense / chunk;
  result.meanRank = dense < chunk ? sum / (chunk - dense) : 0;
  const auto states = double(result.states);
  result.readBytes = states * layer.dv * layer.dk * 4;
  result.writtenBytes = states / chunk * sum * (layer.dv + layer.dk + 1) * 4;
}

} // namespace

bool ss_bench::isRightRank(const double *values, int32_t side, int32_t most,
                           double eps, int32_t found) {
  const double line = eps * values[0];
  if (found < 0)
    return most < side && values[most] >= line * (1 - kAtTheLine);
  const auto keptAbove = [&](double weight) {
    return std::count_if(values, values + side,
                         [&](double value) { return value >= weight; });
  };
  return found <= most && found >= keptAbove(line * (1 + kAtTheLine)) &&
         found <= keptAbove(line * (1 - kAtTheLine));
}

void ss_bench::checkInit(const Spectra &spectra, const LayerManifest &layer,
                         double eps, const FoundStates &found,
                         InitResult &result) {
  addSizes(layer, found, result);
  const int32_t side = std::min(layer.dv, layer.dk);
  const int64_t width = layer.dk + layer.dv;
  for (int64_t i = 0; i < std::min(found.chunk, spectra.count); ++i) {
    const double *values = spectra.valuesOf(i);
    const int32_t rank = found.ranks[size_t(i)];
    const int32_t status = found.status[size_t(i)];
    ++result.checked;
    if (status == SS_STATUS_NOT_CONVERGED) {
      ++result.leftOver;
      continue;
    }
    result.wrongRanks +=
        status != 0 || !isRightRank(values, side, found.most, eps, rank);
    if (rank < 0 || rank > found.most)
      continue;
    const float *weights = found.weights.data() + i * found.most;
    checkWeights(values, rank, weights, result);
    if (i >= kMultiplied)
      continue;
    const double error =
        errorOf(spectra, i, rank,
                found.rows.data() + i * found.most * width, weights);
    result.boundShare =
        std::isnan(error) ? HUGE_VAL : std::max(result.boundShare, error);
  }
}
