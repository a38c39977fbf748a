//===- PackagesBackEnd.cpp - Packages that were made elsewhere ------------===//
//
// Runs folders that conformance_packages has written, so that the suite can
// run where there is no compiler: on the CPU and on a GPU.
//
//===----------------------------------------------------------------------===//

#include "BackEnd.h"

#include <nlohmann/json.hpp>

#include <dlfcn.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace sinkstate::conformance {
namespace {

std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file)
    throw std::runtime_error("cannot read '" + path +
                             "', expected a folder that conformance_packages "
                             "wrote: run it with the same sources");
  return text;
}

/// 2, 3 or 4; 0 where this processor lacks the level.
int runnableLevel(const std::string &isa) {
#if defined(__x86_64__)
  if (isa == "x86-64-v4" && __builtin_cpu_supports("x86-64-v4"))
    return 4;
  if (isa == "x86-64-v3" && __builtin_cpu_supports("x86-64-v3"))
    return 3;
  if (isa == "x86-64-v2" && __builtin_cpu_supports("x86-64-v2"))
    return 2;
#endif
  return 0;
}

class PackageModel : public Model {
public:
  PackageModel(const std::string &folder, bool onCpu)
      : text(readText(folder + "/manifest.json")),
        handle(Package::open(folder)) {
    if (onCpu)
      library.reset(dlopen(bestLibrary(folder).c_str(), RTLD_NOW | RTLD_LOCAL));
  }
  const Package &package() const override { return handle; }
  const std::string &manifest() const override { return text; }
  ss_cpu_kernel kernel(const std::string &name) const override {
    void *symbol = library ? dlsym(library.get(), name.c_str()) : nullptr;
    return reinterpret_cast<ss_cpu_kernel>(symbol);
  }

private:
  std::string bestLibrary(const std::string &folder) const {
    const nlohmann::json manifest = nlohmann::json::parse(text);
    int best = 0;
    std::string file;
    for (const nlohmann::json &code : manifest.at("cpu"))
      if (int level = runnableLevel(code.at("isa")); level > best) {
        best = level;
        file = code.at("file");
      }
    // A name without a slash would be searched for in the system's folders.
    return (folder.find('/') == std::string::npos ? "./" : "") + folder + "/" +
           file;
  }

  struct Close {
    void operator()(void *library) const noexcept { dlclose(library); }
  };
  std::string text;
  std::unique_ptr<void, Close> library;
  Package handle;
};

class PackagesBackEnd : public BackEnd {
public:
  explicit PackagesBackEnd(std::string folder) : folder(std::move(folder)) {}
  std::string name() const override { return "packages"; }

protected:
  std::unique_ptr<Model> open(const Graph &graph) override {
    return std::make_unique<PackageModel>(folder + "/" + graph.name, true);
  }

  std::string folder;
};

class CudaBackEnd : public BackEnd {
public:
  explicit CudaBackEnd(std::string folder)
      : folder(std::move(folder)), reason(findReason()) {}
  std::string name() const override { return "cuda"; }
  std::string unavailable() const override { return reason; }
  std::map<std::string, std::string> unsupported() const override {
    const std::string onHost =
        "launches single kernels on the host; the same kernels reach a GPU "
        "through the engine's tests";
    return {{"Compaction", onHost},
            {"Truncation", onHost},
            {"MaxRank", onHost},
            {"WorkedExample", onHost},
            {"Degenerate", onHost},
            {"DenseFallback", "states do not go dense on the CUDA device"},
            {"Consolidation",
             "frozen parts are not consolidated on the CUDA device"}};
  }
  void configure(ss_engine_options &options) const override {
    options.device = SS_DEVICE_CUDA;
    options.dense_fallback = 0;
    options.consolidate_every = 0;
  }

protected:
  std::unique_ptr<Model> open(const Graph &graph) override {
    return std::make_unique<PackageModel>(folder + "/" + graph.name, false);
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

std::unique_ptr<BackEnd> makePackagesBackEnd(std::string folder) {
  return std::make_unique<PackagesBackEnd>(std::move(folder));
}

std::unique_ptr<BackEnd> makeCudaBackEnd(std::string folder) {
  return std::make_unique<CudaBackEnd>(std::move(folder));
}

} // namespace sinkstate::conformance
