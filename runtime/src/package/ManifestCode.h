//===- ManifestCode.h - The code files that a manifest names ----*- C++ -*-===//
#ifndef SINKSTATE_PACKAGE_MANIFESTCODE_H
#define SINKSTATE_PACKAGE_MANIFESTCODE_H

#include "package/Manifest.h"
#include "package/ManifestFields.h"

namespace sinkstate::runtime {

/// The fields `file` and `sha256` of an entry.
PackageFile parseFile(const ManifestObject &entry);

/// Reads `cuda` and `cuda_headers` of the top level into `manifest`, whose
/// kernels are there already.
void parseCudaCode(const Json &top, Manifest &manifest);

} // namespace sinkstate::runtime

#endif
