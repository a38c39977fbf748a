//===- KernelDump.h - Looking at kernels and replacing them -----*- C++ -*-===//
//
// The two ends of one way of working: let SS_DUMP_DIR write the kernels, edit a
// copy of one, and let SS_OVERRIDE_DIR put it in the place of the original.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CACHE_KERNELDUMP_H
#define SINKSTATE_CACHE_KERNELDUMP_H

#include "cache/EntryManifest.h"
#include "cache/KernelKey.h"
#include "result/Result.h"

#include <string>

namespace sinkstate::cache {

/// <dump>/<kernel>-<architecture>-<12 digits of the key>, the names made fit
/// for a file.
std::string dumpFolderOf(const std::string &dump, const KernelKeyInputs &inputs,
                         const std::string &key);

/// Writes <kernel>.cu, headers/ and flags.txt into the kernel's dump folder.
Status dumpSources(const std::string &dump, const KernelKeyInputs &inputs,
                   const std::string &key);
/// Writes the blobs beside them.
Status dumpBlobs(const std::string &dump, const KernelKeyInputs &inputs,
                 const std::string &key, const Blobs &blobs);

/// The file that replaces the kernel's source if it exists.
std::string overrideFile(const std::string &folder,
                         const std::string &kernelName);
/// Whether the source was replaced; an error if there is a file that cannot be
/// read.
Result<bool> applyOverride(const std::string &folder, KernelKeyInputs &inputs);

} // namespace sinkstate::cache

#endif
