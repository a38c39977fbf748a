//===- Nvtx.cpp - Ranges for NVIDIA's profilers ---------------------------===//

#include "observe/Nvtx.h"

#include "environment/Environment.h"

#include <dlfcn.h>

namespace sinkstate::runtime {
namespace {

struct Nvtx {
  int (*push)(const char *) = nullptr;
  int (*pop)() = nullptr;

  Nvtx() {
    const std::string path = environment::read(environment::nvtxLibrary);
    if (path.empty())
      return;
    // Never closed: ranges may be open until the process ends.
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return;
    push = reinterpret_cast<int (*)(const char *)>(
        dlsym(library, "nvtxRangePushA"));
    pop = reinterpret_cast<int (*)()>(dlsym(library, "nvtxRangePop"));
    if (!push || !pop)
      push = nullptr, pop = nullptr;
  }
};

const Nvtx &nvtx() {
  static const Nvtx library;
  return library;
}

} // namespace

NvtxRange::NvtxRange(const char *name) {
  if (nvtx().push)
    nvtx().push(name);
}

NvtxRange::~NvtxRange() {
  if (nvtx().pop)
    nvtx().pop();
}

} // namespace sinkstate::runtime
