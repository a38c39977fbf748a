//===- Statistics.h - What an engine counted, for --stats -------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_STATISTICS_H
#define SINKSTATE_TOOLS_SS_RUN_STATISTICS_H

#include "EngineBackend.h"

#include <string>

namespace ss_run {

/// Tables of the layers (where the device tells) and of the engine.
tiny_hybrid::Result<std::string>
formatStatistics(const tiny_hybrid::EngineBackend &backend);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_STATISTICS_H
