//===- EngineProbe.cpp - The compressed states of an engine ---------------===//

#include "EngineProbe.h"

#include <algorithm>

using namespace ss_run;

EngineProbe::EngineProbe(const tiny_hybrid::EngineBackend &backend)
    : backend(backend) {
  for (const ss_layer_info &info : backend.layers())
    infos.push_back(
        {info.type, info.index, info.heads, std::min(info.dk, info.dv)});
}
