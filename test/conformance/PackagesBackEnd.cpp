//===- PackagesBackEnd.cpp - Packages that were made elsewhere ------------===//
//
// Runs folders that conformance_packages has written, so that the suite can
// run where there is no compiler.
//
//===----------------------------------------------------------------------===//

#include "PackageModel.h"

#include <nlohmann/json.hpp>

#include <dlfcn.h>

namespace sinkstate::conformance {
namespace {

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

class HostModel : public PackageModel {
public:
  explicit HostModel(const std::string &folder)
      : PackageModel(folder),
        library(dlopen(bestLibrary(folder).c_str(), RTLD_NOW | RTLD_LOCAL)) {}

protected:
  ss_cpu_kernel kernel(const std::string &name) const override {
    void *symbol = library ? dlsym(library.get(), name.c_str()) : nullptr;
    return reinterpret_cast<ss_cpu_kernel>(symbol);
  }

private:
  std::string bestLibrary(const std::string &folder) const {
    const nlohmann::json content = nlohmann::json::parse(manifest());
    int best = 0;
    std::string file;
    for (const nlohmann::json &code : content.at("cpu"))
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
  std::unique_ptr<void, Close> library;
};

class PackagesBackEnd : public BackEnd {
public:
  explicit PackagesBackEnd(std::string folder) : folder(std::move(folder)) {}
  std::string name() const override { return "packages"; }

protected:
  std::unique_ptr<Model> open(const Graph &graph) override {
    return std::make_unique<HostModel>(folder + "/" + graph.name);
  }

  std::string folder;
};

} // namespace

std::unique_ptr<BackEnd> makePackagesBackEnd(std::string folder) {
  return std::make_unique<PackagesBackEnd>(std::move(folder));
}

} // namespace sinkstate::conformance
