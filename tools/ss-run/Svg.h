//===- Svg.h - The ranks of a run as a picture ------------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_SVG_H
#define SINKSTATE_TOOLS_SS_RUN_SVG_H

#include "Measurement.h"

#include <string>

namespace ss_run {

/// A heat map: one row per layer and head, time to the right, the stored rank
/// as colour. Steps are merged, the largest rank shown, where there are more
/// than the picture has columns.
std::string drawRanks(const RankHistory &history, const std::string &subtitle);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_SVG_H
