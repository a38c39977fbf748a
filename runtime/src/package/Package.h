//===- Package.h - A loaded kernel package ----------------------*- C++ -*-===//
#ifndef SINKSTATE_PACKAGE_PACKAGE_H
#define SINKSTATE_PACKAGE_PACKAGE_H

#include "package/Manifest.h"

#include "sinkstate/sinkstate.h"

#include <memory>
#include <string>
#include <vector>

namespace sinkstate::runtime {

/// Immutable. Engines share it, so that its code outlives them.
class Package {
public:
  /// Opens a folder: manifest, then the best CPU library this processor runs.
  /// GPU code is read when an engine needs it.
  static std::shared_ptr<const Package> open(const std::string &folder);
  static std::shared_ptr<const Package> fromMemory(std::string_view manifest,
                                                   ss_kernel_lookup lookup,
                                                   void *context);

  const Manifest &manifest() const { return content; }
  const KernelManifest &kernel(KernelIndex index) const {
    return content.kernels[size_t(index)];
  }
  /// A file of the package, whose hash is checked.
  std::string read(const PackageFile &file) const;

  /// Throws unless the package has CPU code that this processor runs.
  void requireCpuCode() const;
  ss_cpu_kernel cpuEntry(KernelIndex index) const {
    return cpuEntries[size_t(index)];
  }

private:
  struct LibraryCloser {
    void operator()(void *handle) const noexcept;
  };

  void loadCpuLibrary(const PackageFile &file);

  Manifest content;
  std::string folder; ///< empty: made in memory
  std::unique_ptr<void, LibraryCloser> library;
  std::vector<ss_cpu_kernel> cpuEntries;
};

} // namespace sinkstate::runtime

#endif
