//===- EntryManifest.h - manifest.json of a cache entry ---------*- C++ -*-===//
//
//   {"format": "sinkstate-kernel", "version": 1, "key": "<64 hex>",
//    "created": 1767225600,
//    "inputs": {"kernel": "gdn_decode", "architecture": "sm_90a",
//      "nvrtc": "12.9", "abi": 4, "build": "build-id:...",
//      "flags": ["--std=c++17"], "source": {"size": 4711, "sha256": "..."},
//      "headers": [{"name": "ss_tile.cuh", "size": 815, "sha256": "..."}]},
//    "blobs": [{"name": "gdn_decode.cubin", "size": 9000, "sha256": "..."}]}
//
// `inputs` is for people; the key alone decides.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CACHE_ENTRYMANIFEST_H
#define SINKSTATE_CACHE_ENTRYMANIFEST_H

#include "cache/KernelKey.h"
#include "result/Result.h"

#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sinkstate::cache {

/// What a compilation made, by name: cubins, the compiler's log.
using Blobs = std::map<std::string, std::string>;

inline constexpr const char *kManifestFile = "manifest.json";
/// Empty file whose modification time is when the entry was last used.
inline constexpr const char *kUsedFile = "used";
inline constexpr uint64_t kMaxManifestBytes = uint64_t(16) << 20;

/// Size and hash of a file or of a source text.
struct ContentRecord {
  std::string name;
  uint64_t size = 0;
  std::string sha256;
};

/// The key's inputs without the texts.
struct InputsRecord {
  std::string kernelName, architecture, nvrtcVersion, buildId;
  int64_t abiVersion = 0;
  std::vector<std::string> flags;
  ContentRecord source;
  std::vector<ContentRecord> headers;
};

struct EntryManifest {
  std::string key;
  std::time_t created = 0;
  InputsRecord inputs;
  std::vector<ContentRecord> blobs;
};

/// Whether a blob may have this name: a plain ASCII file name of at most 200
/// bytes that is not one of the entry's own files nor begins with a dot.
bool isBlobName(std::string_view name);

EntryManifest describeEntry(const std::string &key,
                            const KernelKeyInputs &inputs, const Blobs &blobs,
                            std::time_t created);
std::string toJson(const EntryManifest &manifest);
/// Checks form, version and every name; errors do not name the file.
Result<EntryManifest> parseEntryManifest(std::string_view json);

} // namespace sinkstate::cache

#endif
