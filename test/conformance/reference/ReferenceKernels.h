//===- ReferenceKernels.h - Kernels in plain C++ ----------------*- C++ -*-===//
//
// The kernels of docs/interfaces.md section 3 written directly in C++, with
// float64 between loads and stores. They let the runtime be tested without a
// compiler, and are what compiled kernels are compared with.
//
//   KernelSet kernels({gdnLayer(2, 2, 128, 128)});
//   ss_package_from_memory(kernels.manifest().data(),
//                          kernels.manifest().size(), &KernelSet::lookup,
//                          &kernels, &package);
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_REFERENCEKERNELS_H
#define SINKSTATE_REFERENCE_REFERENCEKERNELS_H

#include "ModelSpec.h"

#include "sinkstate/sinkstate.h"

#include <memory>
#include <string>
#include <vector>

namespace sinkstate::reference {

/// The kernels of one model. Engines over it must not outlive it.
class KernelSet {
public:
  explicit KernelSet(std::vector<LayerSpec> layers);
  ~KernelSet();
  KernelSet(const KernelSet &) = delete;
  KernelSet &operator=(const KernelSet &) = delete;

  const std::vector<LayerSpec> &layers() const { return specs; }
  const std::string &manifest() const { return manifestText; }

  /// For ss_package_from_memory; `context` is the KernelSet.
  static ss_cpu_kernel lookup(void *context, const char *name);

private:
  ss_cpu_kernel find(const std::string &name) const;

  std::vector<LayerSpec> specs;
  std::vector<size_t> places; ///< entry points taken, one per layer
  std::string manifestText;
};

/// manifest.json for these layers, with kernels named "<layer>_<role>".
std::string referenceManifest(const std::vector<LayerSpec> &layers);

} // namespace sinkstate::reference

#endif
