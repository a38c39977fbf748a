//===- BackEnd.cpp - Who runs the conformance suite -----------------------===//

#include "BackEnd.h"

#include "ReferenceKernels.h"

#include "sinkstate/cpu_routines.h"

#include <stdexcept>

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

protected:
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
  std::map<std::string, std::string> unsupported() const override {
    const std::string reason = "the reference kernels store f32 rows";
    const std::string sinks = "the reference kernels have no sinks";
    return {{"NarrowRows", reason},
            {"NarrowFallback", reason},
            {"NarrowDenseForm", reason},
            {"DeferredForm", "there are no reference kernels of this form"},
            {"DeferredConversions", "there are no reference kernels of this form"},
            {"NarrowBlocks", reason},
            {"NarrowFolds", reason},
            {"NarrowSinks", reason},
            {"ByteRows", reason},
            {"RandomRows", reason},
            {"RandomHeads", reason},
            {"Sinks", sinks},
            {"FullSinks", sinks},
            {"NoSinks", sinks},
            {"SinkTruncation", sinks},
            {"SinkHandOver", sinks},
            {"SinkPairs", sinks},
            {"SinkTwins", sinks},
            {"OpenLoop", sinks}};
  }

private:
  std::unique_ptr<Model> open(const Graph &graph) override {
    return std::make_unique<ReferenceModel>(graph);
  }
};

} // namespace

void Model::launch(const std::string &name,
                   const std::vector<KernelArgument> &arguments, int64_t begin,
                   int64_t end) const {
  const ss_cpu_kernel entry = kernel(name);
  if (!entry)
    throw std::runtime_error("kernel '" + name + "' cannot run on the host");
  std::vector<const void *> values;
  for (const KernelArgument &argument : arguments)
    values.push_back(argument.array
                         ? static_cast<const void *>(&argument.array)
                         : static_cast<const void *>(&argument.number));
  entry(values.data(), ss_cpu_routines(), begin, end);
}

const Model &BackEnd::model(const Graph &graph) {
  std::unique_ptr<Model> &model = models[graph.name];
  if (!model)
    model = open(graph);
  return *model;
}

void registerBackEnd(std::unique_ptr<BackEnd> backEnd) {
  registered().push_back(std::move(backEnd));
}

const std::vector<std::unique_ptr<BackEnd>> &backEnds() { return registered(); }

std::unique_ptr<BackEnd> makeReferenceBackEnd() {
  return std::make_unique<ReferenceBackEnd>();
}

} // namespace sinkstate::conformance
