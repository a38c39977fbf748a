//===- TestLayers.h - Layers and results for the tests of ss-bench -*- C++ -*-===//
#ifndef SS_BENCH_TESTLAYERS_H
#define SS_BENCH_TESTLAYERS_H

#include "Baselines.h"
#include "Measured.h"

#include "package/Manifest.h"

namespace ss_bench {

inline sinkstate::runtime::LayerManifest gdnLayer() {
  sinkstate::runtime::LayerManifest layer;
  layer.type = "gdn";
  layer.heads = 4, layer.keyHeads = 2, layer.dv = 16, layer.dk = 32;
  layer.active = layer.buffer = 8;
  layer.hasBeta = true;
  layer.policy.value = 0.01;
  layer.rank = 32;
  return layer;
}

/// Two batch sizes, with the dense form; B = 8 is not correct.
inline BenchResult someResult() {
  BenchResult result;
  result.model = "some<model>";
  result.storage = "f32";
  ss_tools::PackageLayer layer;
  layer.name = "layer0", layer.type = "gdn", layer.form = "factored";
  layer.policy = "relative:0.01", layer.core = "svd", layer.storage = "f32";
  layer.rounding = "nearest";
  layer.active = 8, layer.buffer = 16;
  result.states = {layer};
  result.machine = {"a GPU", "13.0", ""};
  result.profile = "uniform:8";
  result.device = "a GPU";
  result.shape = {"gdn", 4, 2, 16, 32};
  result.layers = 3;
  result.copyBandwidth = 4e12;
  for (int32_t batch : {1, 8}) {
    Measured m;
    m.batch = batch;
    m.data = "synthetic";
    m.staggered = true;
    m.step = 10 * batch, m.decodeOnly = 8 * batch;
    m.stepMedian = 30 * batch, m.stepP99 = 33 * batch;
    m.decodeBytes = 16e6 * batch;
    m.denseBytes = 100, m.stateBytes = 40, m.allocatedBytes = 50;
    m.checkedStates = 1;
    m.outputError = batch == 8 ? 1 : 1e-6;
    Measured dense = m;
    dense.data = "synthetic", dense.step = 40 * batch;
    Measured deferred = dense;
    deferred.step = 20 * batch;
    BatchResult all{batch, {}, {}};
    all.add({m, dense, deferred}, {DenseForm::Dense, DenseForm::Deferred});
    result.batches.push_back(all);
  }
  return result;
}

inline const char *const kBaselineLines =
    R"({"gpu": "a GPU", "driver": "580", "torch": "2", "triton": "3", "copy_gb_s": 4000.0})"
    "\n"
    R"({"kernel": "fla_gdn", "version": "0.3", "type": "gdn", "heads": 4, "key_heads": 2, "dv": 16, "dk": 32, "batch": 8, "state": "f32", "us": 240.0, "gb_s": 1.0})"
    "\n"
    R"({"kernel": "flashinfer_gdn", "missing": "not installed"})"
    "\n";

} // namespace ss_bench

#endif
