//===- GraphReplay.h - Steps as CUDA graphs ---------------------*- C++ -*-===//
//
// Makes a RequestDriver capture the first step of every batch size and replay
// the graph from then on, over whatever driver the process has.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_GRAPHREPLAY_H
#define SINKSTATE_UNIT_GRAPHREPLAY_H

#include "RequestDriver.h"

#include "cuda/Context.h"

#include <map>
#include <memory>

namespace sinkstate::test {

class GraphReplay {
public:
  explicit GraphReplay(reference::RequestDriver &driver);
  ~GraphReplay();
  size_t captured() const { return graphs.size(); }

private:
  void capture(size_t batch);
  void submit(size_t batch);

  reference::RequestDriver &requests;
  std::shared_ptr<const runtime::cuda::Driver> driver;
  std::shared_ptr<const runtime::cuda::Context> context;
  runtime::cuda::CUstream stream = nullptr;
  std::map<size_t, runtime::cuda::CUgraphExec> graphs;
};

} // namespace sinkstate::test

#endif
