//===- BuildIdentity.h - Which build of our code is running -----*- C++ -*-===//
//
// A version number is not enough in a key: two builds of one version may print
// other code or pass other flags. The GNU build id changes with every byte of
// the linked file and is already in memory.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CACHE_BUILDIDENTITY_H
#define SINKSTATE_CACHE_BUILDIDENTITY_H

#include <optional>
#include <string>

namespace sinkstate::cache {

/// Identity of the library or executable that contains this code:
/// "build-id:<hex>", or "sha256:<hex>" of its file where it was linked without
/// a build id, or nothing if that file cannot be read either.
std::optional<std::string> ownBuildIdentity();

/// The same for the file that contains `address`.
std::optional<std::string> buildIdentityAt(const void *address);

/// "sha256:<hex>" of the file, or nothing if it cannot be read.
std::optional<std::string> identityOfFile(const std::string &path);

} // namespace sinkstate::cache

#endif
