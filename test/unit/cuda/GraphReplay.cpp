//===- GraphReplay.cpp - Steps as CUDA graphs -----------------------------===//

#include "GraphReplay.h"

namespace sinkstate::test {

using namespace runtime::cuda;

CapturedCalls::CapturedCalls(const std::function<void(void *)> &calls)
    : driver(Driver::get()), context(Context::open(driver, 0)) {
  {
    CurrentContext current(*context);
    SS_CUDA(*driver, cuStreamCreate(&stream, kStreamNonBlocking));
    SS_CUDA(*driver, cuStreamBeginCapture(stream, kCaptureModeThreadLocal));
  }
  calls(stream); // which may not have a context
  CurrentContext current(*context);
  CUgraph recorded = nullptr;
  SS_CUDA(*driver, cuStreamEndCapture(stream, &recorded));
  SS_CUDA(*driver, cuGraphInstantiateWithFlags(&graph, recorded, 0));
  SS_CUDA(*driver, cuGraphDestroy(recorded));
}

CapturedCalls::~CapturedCalls() {
  const Driver::Functions &call = driver->functions();
  CurrentContext current(*context);
  (void)call.cuGraphExecDestroy(graph);
  (void)call.cuStreamDestroy(stream);
}

void CapturedCalls::launchOn(const CapturedCalls &other) const {
  CurrentContext current(*context);
  SS_CUDA(*driver, cuGraphLaunch(graph, other.stream));
}

void CapturedCalls::wait() const {
  CurrentContext current(*context);
  SS_CUDA(*driver, cuStreamSynchronize(stream));
}

void CapturedCalls::replay() const {
  launchOn(*this);
  wait();
}

GraphReplay::GraphReplay(reference::RequestDriver &requests) {
  requests.setSubmit([this, &requests](size_t batch) {
    const auto [graph, isNew] = graphs.try_emplace(
        batch, [&](void *stream) { requests.enqueue(batch, stream); });
    graph->second.replay();
  });
}

} // namespace sinkstate::test
