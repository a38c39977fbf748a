//===- Nvtx.cpp - Ranges for NVIDIA's profilers ---------------------------===//
//
// Since its version 3 NVTX is headers alone: a process has tables of function
// pointers, and the library of a profiler puts its own functions into them. The
// types below are that agreement (nvtx3/nvtxDetail/nvtxTypes.h), so that neither
// building nor running needs anything of a toolkit.
//
//===----------------------------------------------------------------------===//

#include "observe/Nvtx.h"

#include "environment/Environment.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace sinkstate::runtime {
namespace {

using NvtxFunction = void (*)();

constexpr uint32_t kCallbacks = 1, kVersion = 3; // of tables
constexpr uint32_t kNvtxVersion = 3;
// Numbers of functions in the table of the module `core`.
constexpr int kCore = 1, kPushA = 9, kPop = 11;

/// Functions of a module, and the first one, which does not exist.
struct Module {
  unsigned count;
  NvtxFunction functions[16] = {};
  NvtxFunction *table[17] = {}; ///< a pointer to each; null behind the last
};

/// In the order of NvtxCallbackModule: none, core, CUDA, OpenCL, CUDA runtime,
/// core 2, synchronization. All are there, as in the headers, whatever a
/// profiler asks for; only two functions are called.
Module modules[] = {{0}, {16}, {9}, {15}, {7}, {16}, {7}};

int moduleFunctions(int module, NvtxFunction ***table, unsigned *count) {
  if (module < kCore || module >= int(std::size(modules)))
    return 0;
  Module &found = modules[module];
  for (unsigned i = 1; i < found.count; ++i)
    found.table[i] = &found.functions[i];
  if (table)
    *table = found.table;
  if (count)
    *count = found.count;
  return 1;
}

struct Callbacks {
  size_t size;
  int (*moduleFunctions)(int module, NvtxFunction ***table, unsigned *count);
};
struct Version {
  size_t size;
  uint32_t version, reserved;
  void (*setProfilerVersion)(uint32_t);
};

const void *exportTable(uint32_t which) {
  static const Callbacks callbacks = {sizeof(Callbacks), moduleFunctions};
  static const Version version = {sizeof(Version), kNvtxVersion, 0,
                                  [](uint32_t) {}};
  if (which == kCallbacks)
    return &callbacks;
  return which == kVersion ? &version : nullptr;
}

void *openLibrary(const std::string &path) {
  // Never closed: ranges may be open until the process ends.
  return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

NvtxFunctions pairOf(NvtxFunction push, NvtxFunction pop) {
  if (!push || !pop)
    return {};
  return {reinterpret_cast<int (*)(const char *)>(push),
          reinterpret_cast<int (*)()>(pop)};
}

const NvtxFunctions &nvtx() {
  static const NvtxFunctions functions =
      NvtxFunctions::open(environment::read(environment::nvtxLibrary),
                          environment::read(environment::nvtxInjection));
  return functions;
}

} // namespace

NvtxFunctions NvtxFunctions::open(const std::string &library,
                                  const std::string &injection) {
  if (void *given = openLibrary(library))
    return pairOf(
        reinterpret_cast<NvtxFunction>(dlsym(given, "nvtxRangePushA")),
        reinterpret_cast<NvtxFunction>(dlsym(given, "nvtxRangePop")));
  void *profiler = openLibrary(injection);
  if (!profiler)
    return {};
  auto initialize =
      reinterpret_cast<int (*)(const void *(*)(uint32_t))>(
          dlsym(profiler, "InitializeInjectionNvtx2"));
  if (!initialize || initialize(exportTable) == 0)
    return {};
  const NvtxFunction *core = modules[kCore].functions;
  return pairOf(core[kPushA], core[kPop]);
}

NvtxRange::NvtxRange(const char *name) {
  if (nvtx().push)
    nvtx().push(name);
}

NvtxRange::NvtxRange(const char *name, const std::string &detail) {
  if (nvtx().push)
    nvtx().push((name + (" " + detail)).c_str());
}

NvtxRange::~NvtxRange() {
  if (nvtx().pop)
    nvtx().pop();
}

} // namespace sinkstate::runtime
