//===- DeferredState.cpp - Dense states that are written late -------------===//

#include "state/DeferredState.h"

#include "capi/Failure.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sinkstate::runtime {
namespace {

/// One head's matrix and pairs.
class HeadPairs {
public:
  HeadPairs(const LayerManifest &layer, const DeferredPairs &pairs, int64_t head)
      : dv(layer.dv), dk(layer.dk), channelDecay(layer.channelDecay),
        half(pairs.count > layer.buffer ? layer.buffer : 0),
        count(pairs.count - half) {
    const int64_t keyHead = head / (layer.heads / layer.keyHeads);
    const int64_t buffer = layer.buffer;
    k = pairs.k + (keyHead * 2 * buffer + half) * dk;
    u = pairs.u + head * buffer * dv;
    g = pairs.g + head * buffer * (channelDecay ? dk : 1);
  }

  /// `from` [dk, dv], `to` [dv, dk].
  void add(const float *from, float *to) const {
    std::vector<double> column(static_cast<size_t>(dv));
    for (int64_t c = 0; c < dk; ++c) {
      const double last = count > 0 ? double(logDecay(count - 1, c)) : 0.0;
      for (int64_t r = 0; r < dv; ++r)
        column[size_t(r)] = from[c * dv + r] * std::exp(last);
      for (int64_t j = 0; j < count; ++j) {
        const double key = k[j * dk + c] * std::exp(last - logDecay(j, c));
        for (int64_t r = 0; r < dv; ++r)
          column[size_t(r)] += u[j * dv + r] * key;
      }
      for (int64_t r = 0; r < dv; ++r)
        to[r * dk + c] = float(column[size_t(r)]);
    }
  }

private:
  float logDecay(int64_t j, int64_t c) const {
    return channelDecay ? g[j * dk + c] : g[j];
  }

  int64_t dv, dk;
  bool channelDecay;
  int64_t half, count;
  const float *k, *u, *g;
};

} // namespace

void addDeferredPairs(const LayerManifest &layer, const DeferredPairs &pairs,
                      float *states) {
  const int64_t size = int64_t(layer.dv) * layer.dk;
  std::vector<float> before(static_cast<size_t>(size));
  for (int64_t head = 0; head < layer.heads; ++head) {
    std::copy_n(states + head * size, size, before.begin());
    HeadPairs(layer, pairs, head).add(before.data(), states + head * size);
  }
}

void refuseDeferred(const LayerManifest &layer) {
  if (layer.deferred)
    fail(SS_NOT_SUPPORTED, "layer '", layer.name,
         "' has the deferred form, whose states are not handed over: use the "
         "dense or the factored form");
}

} // namespace sinkstate::runtime
