//===- FakeKernels.cpp - A package's CPU code as the fake GPU's -----------===//

#include "FakeKernels.h"

#include "FakeCuda.h"
#include "HostSchedule.h"

#include "sinkstate/cpu_routines.h"

#include <nlohmann/json.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <stdexcept>

namespace sinkstate::test {
namespace {

struct Entry {
  ss_cpu_kernel run;
  size_t arguments;
  int64_t programsPerBlock;
  bool loops;
};

/// As many programs as the grid has, or all where each block goes on to more.
void runEntry(void *context, void *const *parameters, unsigned blocks) {
  const Entry &entry = *static_cast<const Entry *>(context);
  const int64_t all = *static_cast<const int64_t *>(parameters[entry.arguments]);
  const int64_t ofGrid = int64_t(blocks) * entry.programsPerBlock;
  entry.run(parameters, ss_cpu_routines(), 0,
            entry.loops ? all : std::min(all, ofGrid));
}

void registerPackage(const std::string &folder) {
  static std::deque<Entry> entries; // addresses stay
  std::ifstream file(folder + "/manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(file);
  const std::string library =
      folder + "/" + manifest.at("cpu").at(0).at("file").get<std::string>();
  void *code = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!code)
    throw std::runtime_error(dlerror());
  for (const nlohmann::json &kernel : manifest["kernels"]) {
    const std::string name = kernel["name"];
    std::vector<size_t> sizes;
    for (const nlohmann::json &argument : kernel["args"]) {
      const std::string type = argument["type"];
      sizes.push_back(type == "i32" || type == "f32" ? 4 : 8);
    }
    entries.push_back(
        {reinterpret_cast<ss_cpu_kernel>(dlsym(code, name.c_str())),
         sizes.size(), kernel.value("programs_per_block", int64_t(1)),
         kernel.value("loops", false)});
    sizes.push_back(sizeof(int64_t));
    fake_add_kernel(name.c_str(), sizes.data(), sizes.size(), runEntry,
                    &entries.back());
    // A CPU has one way to run a program.
    if (kernel.value("parts", 1) > 1)
      fake_add_kernel((name + "_parts").c_str(), sizes.data(), sizes.size(),
                      runEntry, &entries.back());
  }
}

} // namespace

void addFakeKernels(const std::vector<std::string> &folders) {
  addHostKernels();
  for (const std::string &folder : folders)
    registerPackage(folder);
}

} // namespace sinkstate::test
