//===- CudaBackEnd.cpp - Packages on a GPU --------------------------------===//
//
// Engines run on the GPU through the C API. Single kernels are launched as
// engines launch them, on copies of the tests' tables.
//
//===----------------------------------------------------------------------===//

#include "PackageModel.h"

#include "capi/Failure.h"
#include "cuda/Memory.h"
#include "cuda/PackageKernels.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace sinkstate::conformance {
namespace {

namespace cuda = runtime::cuda;
using runtime::Argument;
using runtime::ArgumentValues;

/// The kernels of a package on the first GPU.
class LoadedKernels {
public:
  explicit LoadedKernels(const std::string &folder)
      : package(runtime::Package::open(folder)),
        context(cuda::Context::open(cuda::Driver::get(), 0)) {
    cuda::CurrentContext current(*context);
    stream = std::make_unique<cuda::OwnStream>(context);
    kernels = std::make_unique<cuda::PackageKernels>(
        context, *package, cuda::KernelCompiler(*context));
  }
  LoadedKernels(const LoadedKernels &) = delete;
  LoadedKernels &operator=(const LoadedKernels &) = delete;
  ~LoadedKernels() {
    try {
      cuda::CurrentContext current(*context);
      kernels.reset();
      stream.reset();
    } catch (const runtime::Failure &) {
      // The driver has shut down before: the process ends.
    }
  }

  void launch(const std::string &name,
              const std::vector<KernelArgument> &arguments, int64_t programs) {
    cuda::CurrentContext current(*context);
    std::vector<cuda::DeviceMemory> copies(arguments.size());
    ArgumentValues values;
    for (size_t i = 0; i < arguments.size(); ++i)
      set(values, arguments[i], copies[i]);
    kernels->launch(indexOf(name), values, programs, stream->get());
    stream->wait();
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].result)
        stream->copyOut(arguments[i].result, copies[i].address(),
                        arguments[i].bytes);
  }

private:
  runtime::KernelIndex indexOf(const std::string &name) const {
    const auto &all = package->manifest().kernels;
    const auto found = std::find_if(all.begin(), all.end(), [&](auto &kernel) {
      return kernel.name == name;
    });
    if (found == all.end())
      throw std::runtime_error("the package has no kernel '" + name + "'");
    return runtime::KernelIndex(found - all.begin());
  }

  void set(ArgumentValues &values, const KernelArgument &argument,
           cuda::DeviceMemory &copy) {
    const Argument which = runtime::argumentByName(argument.name).value();
    const std::string_view type = runtime::argumentInfo(which).type;
    if (argument.array) {
      copy = cuda::DeviceMemory(context, std::max<size_t>(argument.bytes, 4));
      stream->copyIn(copy.address(), argument.array, argument.bytes);
      values.setPointer(which, copy.at<char>(0));
    } else if (type == "i64") {
      values.setI64(which, int64_t(argument.number));
    } else if (type == "i32") {
      values.setI32(which, int32_t(argument.number));
    } else {
      float number = 0;
      std::memcpy(&number, &argument.number, sizeof number);
      values.setF32(which, number);
    }
  }

  std::shared_ptr<const runtime::Package> package;
  std::shared_ptr<const cuda::Context> context;
  std::unique_ptr<cuda::OwnStream> stream;
  std::unique_ptr<cuda::PackageKernels> kernels;
};

class CudaModel : public PackageModel {
public:
  explicit CudaModel(const std::string &folder)
      : PackageModel(folder), folder(folder) {}

  void launch(const std::string &kernel,
              const std::vector<KernelArgument> &arguments, int64_t begin,
              int64_t end) const override {
    if (begin != 0)
      throw std::runtime_error("a launch on a GPU starts at program 0");
    if (!kernels)
      kernels = std::make_unique<LoadedKernels>(folder);
    kernels->launch(kernel, arguments, end);
  }

private:
  std::string folder;
  mutable std::unique_ptr<LoadedKernels> kernels; ///< when first needed
};

class CudaBackEnd : public BackEnd {
public:
  explicit CudaBackEnd(std::string folder)
      : folder(std::move(folder)), reason(findReason()) {}
  std::string name() const override { return "cuda"; }
  std::string unavailable() const override { return reason; }
  std::map<std::string, std::string> unsupported() const override {
    return {{"Degenerate.SplitsOfALaunchGiveTheSameBits",
             "a launch on a GPU starts at program 0; the suite Batch splits "
             "batches instead"},
            {"DeterministicRuns",
             "no decode call of the CUDA device waits for an SVD, as inline "
             "mode does"},
            {"Consolidation.MakesRoomAtTheBound",
             "no compaction of the CUDA device waits for the host: without "
             "consolidation the smallest components go"}};
  }
  void configure(ss_engine_options &options) const override {
    options.device = SS_DEVICE_CUDA;
    // Results that land when they are there are not the same every time.
    if (options.consolidate_every > 0 && options.consolidation < 0) {
      options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
      options.consolidation_lag = 0;
    }
  }

protected:
  std::unique_ptr<Model> open(const Graph &graph) override {
    return std::make_unique<CudaModel>(folder + "/" + graph.name);
  }

private:
  std::string findReason() {
    if (folder.empty())
      return "no packages: run conformance_packages and give its folder with "
             "--packages";
    const Model &first = model(allGraphs().front());
    if (nlohmann::json::parse(first.manifest()).at("cuda").empty())
      return "no packages with CUDA code in '" + folder +
             "': run conformance_packages without --no-cuda";
    try {
      ss_engine_options options = engineOptions();
      configure(options);
      Engine engine(first.package(), options);
    } catch (const Exception &exception) {
      if (exception.code() == SS_DEVICE_UNAVAILABLE)
        return std::string("no GPU: ") + exception.what();
      throw;
    }
    return "";
  }

  std::string folder, reason;
};

} // namespace

std::unique_ptr<BackEnd> makeCudaBackEnd(std::string folder) {
  return std::make_unique<CudaBackEnd>(std::move(folder));
}

} // namespace sinkstate::conformance
