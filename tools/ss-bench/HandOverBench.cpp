//===- HandOverBench.cpp - Sizes and times of hand-over -------------------===//

#include "HandOverBench.h"

#include "engine/StateEngine.h"
#include "handover/Restore.h"
#include "handover/Snapshot.h"
#include "state/LayerLayout.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>

using namespace sinkstate::runtime;
using namespace ss_bench;

namespace {

constexpr int64_t kPosition = 1024;

std::vector<float> randomFloats(std::mt19937_64 &random, int64_t count,
                                float scale) {
  std::normal_distribution<float> gauss(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &x : values)
    x = gauss(random);
  return values;
}

/// The states of one layer, with ranks of the profile.
LayerImage imageOf(const LayerManifest &layer, bool holdsDense,
                   const RankProfile &profile, std::mt19937_64 &random) {
  LayerImage image;
  image.shape = LayerShape::of(layer);
  const LayerShape &shape = image.shape;
  if (shape.denseForm) {
    image.dense = randomFloats(random, shape.heads * shape.denseFloats(), 1);
    return image;
  }
  const LayerLayout sizes(layer, 1, holdsDense);
  const int32_t most =
      std::min<int32_t>(sizes.maxRank, int32_t(sizes.breakEvenRank));
  image.count = layer.buffer / 2;
  for (int32_t head = 0; head < shape.heads; ++head) {
    int32_t rank = profile.draw(random, most, layer.type);
    const bool dense = rank < 0 || rank >= sizes.breakEvenRank;
    if (dense)
      rank = sizes.denseFallback ? -1 : most;
    image.heads.push_back({rank, 0, 0, 0});
  }
  image.rows = randomFloats(random, image.storedFloats(), 0.1f);
  for (const HeadImage &head : image.heads)
    for (int64_t i = 0; i < head.components(); ++i)
      image.weights.push_back(1 / float(1 + i));
  const int64_t pairs = image.count;
  image.bufferK = randomFloats(random, shape.keyHeads * pairs * shape.dk, 0.1f);
  image.bufferU = randomFloats(random, shape.heads * pairs * shape.dv, 0.1f);
  image.bufferG.assign(size_t(shape.heads * pairs * shape.decayFloats()),
                       -0.1f);
  return image;
}

double medianOf(int32_t repeats, const std::function<void()> &body) {
  std::vector<double> times;
  for (int32_t i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    times.push_back(passed.count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[size_t(repeats) / 2];
}

void describe(const SlotImage &image, HandOverResult &result) {
  double factored = 0, dense = 0, sum = 0;
  for (const LayerImage &layer : image.layers) {
    result.denseBytes += layer.shape.heads * layer.shape.denseFloats() * 4;
    for (const HeadImage &head : layer.heads) {
      (head.rank < 0 ? dense : factored) += 1;
      sum += double(head.components());
    }
  }
  result.layers = int32_t(image.layers.size());
  result.meanRank = factored > 0 ? sum / factored : 0;
  result.denseShare = factored + dense > 0 ? dense / (factored + dense) : 0;
}

} // namespace

HandOverResult ss_bench::measureHandOver(const HandOverOptions &options,
                                         const RankProfile &profile) {
  const std::shared_ptr<const Package> package =
      Package::open(options.package);
  ss_engine_options engineOptions = {};
  ss_engine_options_init(&engineOptions);
  engineOptions.slots = 3;
  engineOptions.device = options.cuda ? SS_DEVICE_CUDA : SS_DEVICE_CPU;
  engineOptions.device_ordinal = options.device;
  const std::unique_ptr<StateEngine> engine =
      createEngine(package, engineOptions);
  HandOverResult result;
  result.package = options.package;
  result.profile = options.profile;
  result.device = options.cuda ? "cuda:" + std::to_string(options.device)
                               : "cpu";
  std::mt19937_64 random(5);
  SlotImage image;
  image.position = kPosition;
  image.fingerprint = package->manifest().fingerprint;
  for (int32_t i = 0; i < engine->layerCount(); ++i)
    image.layers.push_back(imageOf(package->manifest().layers[size_t(i)],
                                   engine->holdsDense(i), profile, random));
  describe(image, result);
  const int32_t a = engine->allocateSlot(nullptr);
  const int32_t b = engine->allocateSlot(nullptr);
  const int32_t c = engine->allocateSlot(nullptr);
  restoreSlot(*engine, a, image, nullptr);
  result.snapshotBytes =
      int64_t(snapshotBytes(engine->exportSlot(a, false, nullptr)));
  std::vector<std::byte> bytes(size_t(result.snapshotBytes)), again = bytes;
  result.write = medianOf(options.repeats, [&] {
    writeSnapshot(engine->exportSlot(a, true, nullptr), bytes);
  });
  result.restore = medianOf(options.repeats, [&] {
    restoreSlot(*engine, b, readSnapshot(bytes), nullptr);
  });
  result.fork =
      medianOf(options.repeats, [&] { engine->fork(a, c, nullptr); });
  result.same = true;
  for (int32_t slot : {b, c}) {
    const SlotImage copy = engine->exportSlot(slot, true, nullptr);
    result.same &= snapshotBytes(copy) == bytes.size();
    if (!result.same)
      break;
    writeSnapshot(copy, again);
    result.same &= again == bytes;
  }
  return result;
}

std::string ss_bench::formatHandOver(const HandOverResult &r) {
  char text[1024];
  const double mib = 1 << 20;
  std::snprintf(
      text, sizeof text,
      "| package | device | profile | mean rank | dense | dense f32, MiB | "
      "snapshot, MiB | of f32 | of f16 | write, ms | restore, ms | fork, ms | "
      "same |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
      "| %s | %s | %s | %.1f | %.1f %% | %.2f | %.2f | %.3f | %.3f | %.3f | "
      "%.3f | %.3f | %s |\n",
      r.package.c_str(), r.device.c_str(), r.profile.c_str(), r.meanRank,
      100 * r.denseShare, double(r.denseBytes) / mib,
      double(r.snapshotBytes) / mib,
      double(r.snapshotBytes) / double(r.denseBytes),
      2 * double(r.snapshotBytes) / double(r.denseBytes), r.write, r.restore,
      r.fork, r.same ? "yes" : "**no**");
  return text;
}

std::string ss_bench::formatHandOverJson(const HandOverResult &r) {
  const nlohmann::ordered_json root = {{"package", r.package},
                                       {"device", r.device},
                                       {"profile", r.profile},
                                       {"layers", r.layers},
                                       {"mean_rank", r.meanRank},
                                       {"dense_share", r.denseShare},
                                       {"dense_f32_bytes", r.denseBytes},
                                       {"snapshot_bytes", r.snapshotBytes},
                                       {"write_milliseconds", r.write},
                                       {"restore_milliseconds", r.restore},
                                       {"fork_milliseconds", r.fork},
                                       {"same", r.same}};
  return root.dump(2) + "\n";
}
