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

/// The most layers that compact in one step. Steps beyond the first few
/// thousand bring no other figure in practice.
size_t countMostPerStep(ArrayRef<LayerOp> layers, ArrayRef<int64_t> phases,
                        int64_t period) {
  size_t most = 0;
  for (int64_t step = 0, end = std::min<int64_t>(period, 4096); step < end;
       ++step) {
    size_t due = 0;
    for (auto [layer, phase] : llvm::zip(layers, phases))
      due += step % LayerOp(layer).getBuffer() == phase;
    most = std::max(most, due);
  }
  return most;
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

  int64_t period = 1, count = layers.size();
  SmallVector<Attribute> names;
  SmallVector<int64_t> phases;
  for (auto [i, layer] : llvm::enumerate(layers)) {
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
    phases.push_back(stagger ? static_cast<int64_t>(i) * buffer / count : 0);
  }
  OpBuilder builder = OpBuilder::atBlockEnd(&model.getBody().front());
  ScheduleOp::create(builder, model.getLoc(), period,
                     builder.getArrayAttr(names), phases);
  if (report)
    model.emitRemark() << "at most " << countMostPerStep(layers, phases, period)
                       << " of " << count << " layers compact in one step";
}

} // namespace
