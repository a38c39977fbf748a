//===- QualityTable.h - Several ways to keep states, side by side -*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_QUALITYTABLE_H
#define SINKSTATE_TOOLS_SS_RUN_QUALITYTABLE_H

#include "Measurement.h"
#include "Options.h"
#include "PackageLayers.h"

#include <array>
#include <string>
#include <vector>

namespace ss_run {

/// One way to keep states, and the states.
struct Variant {
  std::string name; ///< "relative:0.03/fp8"
  tiny_hybrid::StateBackend *states = nullptr;
  StateProbe *probe = nullptr;
  std::vector<ss_tools::PackageLayer> layers{};
  bool denseFallback = false;
};

struct VariantQuality {
  std::string name;
  std::vector<ss_tools::PackageLayer> layers; ///< how its states are kept
  bool denseFallback = false;
  double bitsPerByte = 0;
  double divergence = 0;              ///< nats, from the dense run
  std::array<double, 4> quarters = {}; ///< the same by quarters of the run
  double liveMean = 0;                ///< bytes
  int64_t livePeak = 0, allocatedPeak = 0;
};

struct QualityTable {
  double bitsPerByteDense = 0;
  int64_t denseBytes = 0; ///< of dense states in f32
  int tokens = 0, from = 0, batch = 0;
  RunOptions run; ///< what all variants share
  std::vector<VariantQuality> variants;
};

/// Decodes the text once with dense states and once with every variant's, token
/// by token side by side. At least four tokens are measured, from `options.from`
/// on; `options.generate` is not looked at.
tiny_hybrid::Result<QualityTable>
measureQuality(const tiny_hybrid::Model &model, const TokenSource &text,
               tiny_hybrid::StateBackend &dense,
               const std::vector<Variant> &variants,
               const MeasureOptions &options);

/// A Markdown table, a row per variant.
std::string formatQuality(const QualityTable &table);
std::string formatQualityJson(const QualityTable &table,
                              const std::string &version);
/// Live bytes to the right, divergence upwards, both on logarithmic scales.
std::string drawQuality(const QualityTable &table, const std::string &subtitle);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_QUALITYTABLE_H
