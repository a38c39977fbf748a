//===- GraphReplay.cpp - Steps as CUDA graphs -----------------------------===//

#include "GraphReplay.h"

namespace sinkstate::test {

using namespace runtime::cuda;

GraphReplay::GraphReplay(reference::RequestDriver &requests)
    : requests(requests), driver(Driver::get()),
      context(Context::open(driver, 0)) {
  CurrentContext current(*context);
  SS_CUDA(*driver, cuStreamCreate(&stream, kStreamNonBlocking));
  requests.setSubmit([this](size_t batch) { submit(batch); });
}

GraphReplay::~GraphReplay() {
  const Driver::Functions &call = driver->functions();
  for (auto [batch, graph] : graphs)
    (void)call.cuGraphExecDestroy(graph);
  (void)call.cuStreamDestroy(stream);
}

void GraphReplay::capture(size_t batch) {
  SS_CUDA(*driver, cuStreamBeginCapture(stream, kCaptureModeThreadLocal));
  requests.enqueue(batch, stream);
  CUgraph graph = nullptr;
  SS_CUDA(*driver, cuStreamEndCapture(stream, &graph));
  CUgraphExec executable = nullptr;
  SS_CUDA(*driver, cuGraphInstantiateWithFlags(&executable, graph, 0));
  SS_CUDA(*driver, cuGraphDestroy(graph));
  graphs[batch] = executable;
}

void GraphReplay::submit(size_t batch) {
  CurrentContext current(*context);
  if (!graphs.count(batch))
    capture(batch);
  SS_CUDA(*driver, cuGraphLaunch(graphs[batch], stream));
  SS_CUDA(*driver, cuStreamSynchronize(stream));
}

} // namespace sinkstate::test
