//===- BackEnd.cpp - Who runs the conformance suite -----------------------===//

#include "BackEnd.h"

#include "ReferenceKernels.h"

namespace sinkstate::conformance {
namespace {

std::vector<std::unique_ptr<BackEnd>> &registered() {
  static std::vector<std::unique_ptr<BackEnd>> list;
  return list;
}

class ReferenceModel : public Model {
public:
  explicit ReferenceModel(const Graph &graph)
      : kernels(graph.layers),
        handle(Package::fromMemory(kernels.manifest(),
                                   &reference::KernelSet::lookup, &kernels)) {}
  const Package &package() const override { return handle; }
  const std::string &manifest() const override { return kernels.manifest(); }
  ss_cpu_kernel kernel(const std::string &name) const override {
    return reference::KernelSet::lookup(&kernels, name.c_str());
  }

private:
  mutable reference::KernelSet kernels;
  Package handle;
};

class ReferenceBackEnd : public BackEnd {
public:
  std::string name() const override { return "reference"; }

private:
  std::unique_ptr<Model> open(const Graph &graph) override {
    return std::make_unique<ReferenceModel>(graph);
  }
};

} // namespace

const Model &BackEnd::model(const Graph &graph) {
  std::unique_ptr<Model> &model = models[graph.name];
  if (!model)
    model = open(graph);
  return *model;
}

void registerBackEnd(std::unique_ptr<BackEnd> backEnd) {
  registered().push_back(std::move(backEnd));
}

const std::vector<std::unique_ptr<BackEnd>> &backEnds() {
  return registered();
}

std::unique_ptr<BackEnd> makeReferenceBackEnd() {
  return std::make_unique<ReferenceBackEnd>();
}

} // namespace sinkstate::conformance
