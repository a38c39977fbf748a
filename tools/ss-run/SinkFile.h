//===- SinkFile.h - Mean values of a model's heads --------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_SINKFILE_H
#define SINKSTATE_TOOLS_SS_RUN_SINKFILE_H

#include "Decoder.h"
#include "TokenSource.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ss_run {

/// [heads, dv] by the layer's place in the model.
using MeanValues = std::map<int, std::vector<float>>;

/// The mean value vector of every head of every recurrent layer over the first
/// `tokens` tokens of a text, decoded with dense states. In double.
tiny_hybrid::Result<MeanValues>
measureMeans(const tiny_hybrid::Model &model, const TokenSource &text,
             int tokens, int threads, const std::function<void(int)> &progress);

/// The content of a safetensors file: a tensor `layers.N.vbar` in F32,
/// [heads, dv], for every recurrent layer.
std::string formatMeans(const tiny_hybrid::Config &config,
                        const MeanValues &means);

/// Reads such a file. A recurrent layer that is not in it has mean values of
/// zero, which is no sink, and is named in `without`; one at least is there.
tiny_hybrid::Result<MeanValues> readMeans(const std::string &path,
                                          const tiny_hybrid::Config &config,
                                          std::vector<int> &without);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_SINKFILE_H
