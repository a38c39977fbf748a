//===- ScheduleCompaction.cpp - ss-schedule-compaction --------------------===//

#include "passes/ss/Passes.h"

#include <numeric>

using namespace mlir;

namespace sinkstate::ss {
#define GEN_PASS_DEF_SSSCHEDULECOMPACTION
#include "passes/ss/Passes.h.inc"
} // namespace sinkstate::ss

using namespace sinkstate::ss;

namespace {

/// Longer patterns than this do not repeat within any request.
constexpr int64_t kMaxPeriod = int64_t(1) << 31;

struct ScheduleCompaction
    : sinkstate::ss::impl::SSScheduleCompactionBase<ScheduleCompaction> {
  using Base::Base;
  void runOnOperation() override;
};

/// Where a layer's compaction stands among the steps, and on which side of the
/// token.
struct Place {
  int64_t step;
  bool before;

  /// What comes before a step's token has the phase of that token, what comes
  /// after it the one of the next.
  int64_t getPhase(int64_t buffer) const {
    return before ? (step + buffer - 1) % buffer : step;
  }
};

/// The most layers that compact in one step. Steps beyond the first few
/// thousand bring no other figure in practice.
size_t countMostPerStep(ArrayRef<LayerOp> layers, ArrayRef<Place> places,
                        int64_t period) {
  size_t most = 0;
  for (int64_t step = 0, end = std::min<int64_t>(period, 4096); step < end;
       ++step) {
    size_t due = 0;
    for (auto [layer, place] : llvm::zip(layers, places))
      due += step % LayerOp(layer).getBuffer() == place.step;
    most = std::max(most, due);
  }
  return most;
}

/// With `compactBefore` the last quarter compacts before its tokens: beside the decodes of the layers in
/// front, as the compactions of the others run beside the decodes behind. None is
/// then left to run alone at the end of a step. The time of a quarter of a model's
/// decodes is that of a compaction, where batches are small; more layers would
/// compact beside decodes that have compactions beside them already.
SmallVector<Place> placeLayers(ArrayRef<LayerOp> layers, bool stagger,
                               bool split) {
  int64_t count = layers.size();
  int64_t firstBefore = split ? count - (count + 2) / 4 : count;
  SmallVector<Place> places;
  for (auto [i, layer] : llvm::enumerate(layers)) {
    int64_t number = i;
    places.push_back(
        {stagger ? number * LayerOp(layer).getBuffer() / count : 0,
         LayerOp(layer).getDraft() > 0 || number >= firstBefore});
  }
  return places;
}

/// What the schedule is, and why.
void tell(ModelOp model, ScheduleOp schedule, size_t most) {
  size_t before = schedule.getBefore() ? schedule.getBefore()->size() : 0;
  InFlightDiagnostic remark = model.emitRemark();
  remark << "at most " << most << " of " << schedule.getLayers().size()
         << " layers compact in one step; ";
  if (before == 0) {
    remark << "all after their token";
    return;
  }
  remark << before << " before their token, from "
         << *schedule.getBefore()->begin()
         << " on: beside the decodes in front of them, so that no compaction "
            "is left to the end of a step";
}

void ScheduleCompaction::runOnOperation() {
  ModelOp model = getOperation();
  if (ScheduleOp old = model.getSchedule())
    old.erase();
  SmallVector<LayerOp> layers;
  for (LayerOp layer : model.getLayers())
    if (layer.isFactored())
      layers.push_back(layer);
  if (layers.empty())
    return;

  int64_t period = 1;
  SmallVector<Attribute> names, before;
  SmallVector<int64_t> phases;
  SmallVector<Place> places = placeLayers(layers, stagger, compactBefore);
  for (auto [layer, place] : llvm::zip(layers, places)) {
    int64_t buffer = layer.getBuffer();
    period = std::lcm(period, buffer);
    if (period > kMaxPeriod) {
      layer.emitOpError("@")
          << layer.getSymName() << " has a buffer of " << buffer
          << ", which makes the schedule's period longer than " << kMaxPeriod
          << "; give the layers buffers with a small common multiple";
      return signalPassFailure();
    }
    names.push_back(FlatSymbolRefAttr::get(layer.getSymNameAttr()));
    phases.push_back(place.getPhase(buffer));
    if (place.before)
      before.push_back(names.back());
  }
  OpBuilder builder = OpBuilder::atBlockEnd(&model.getBody().front());
  auto schedule = ScheduleOp::create(
      builder, model.getLoc(), period, builder.getArrayAttr(names), phases,
      before.empty() ? ArrayAttr() : builder.getArrayAttr(before));
  if (report)
    tell(model, schedule, countMostPerStep(layers, places, period));
}

} // namespace
