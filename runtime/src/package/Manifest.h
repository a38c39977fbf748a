//===- Manifest.h - manifest.json of a kernel package -----------*- C++ -*-===//
//
// The manifest of docs/interfaces.md section 4, parsed and checked: whatever
// passes `parseManifest` can be bound and launched without further questions.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PACKAGE_MANIFEST_H
#define SINKSTATE_PACKAGE_MANIFEST_H

#include "package/KernelArguments.h"
#include "package/Storage.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinkstate::runtime {

enum class PolicyKind : uint8_t { Relative, Fixed, Energy, Budget };

struct Policy {
  PolicyKind kind = PolicyKind::Relative;
  double value = 0;
};

/// Index into Manifest::kernels.
using KernelIndex = int32_t;
constexpr KernelIndex kNoKernel = -1;

struct LayerManifest {
  std::string name, type;
  int32_t index = 0;
  int32_t heads = 0, keyHeads = 0, dv = 0, dk = 0;
  bool denseForm = false;
  /// Of dense form, but written once in `buffer` tokens: a buffer of pairs.
  bool deferred = false;
  bool sinkForm = false; ///< the first component of a state is its sink
  int32_t active = 0, buffer = 0, draft = 0;
  /// What is due is compacted before the next token, not after the one that
  /// makes it due: between steps a buffer may be full. With draft tokens always.
  bool compactsBefore = false;
  bool channelDecay = false, hasBeta = false;
  Storage storage = Storage::F32; ///< of rows and dense states
  bool stochastic = false;        ///< how kernels round to it
  Policy policy;
  int32_t phase = 0;
  int32_t rank = 0; ///< upper bound of stored rows per state
  KernelIndex decode = kNoKernel, compact = kNoKernel, densify = kNoKernel;
  KernelIndex init = kNoKernel; ///< optional

  bool hasBuffer() const { return !denseForm || deferred; }
  /// Pairs in its buffer between steps, at most; 0 in the dense forms.
  int32_t mostPairs() const {
    return denseForm ? 0 : compactsBefore ? buffer + draft : buffer - 1;
  }
  /// Rows in which nothing of a state can be lost: what `rank` must allow.
  int32_t neededRank() const;
};

struct KernelManifest {
  std::string name;
  KernelRole role = KernelRole::Decode;
  int32_t programsPerBlock = 1; ///< of a launch on a GPU
  int32_t warps = 1; ///< of a program on a GPU; more than 1: one program a block
  /// More than 1: the GPU code has a kernel NAME_parts, whose blocks are as many
  /// warps and one program each.
  int32_t parts = 1;
  bool loops = false; ///< on a GPU, a grid of any size runs all programs
  Storage storage = Storage::F32; ///< of `rows` or `dense`
  std::vector<Argument> arguments;
};

/// A file of the package and the hash of its contents.
struct PackageFile {
  std::string path, sha256;
};

struct CpuCodeManifest {
  std::string isa;
  PackageFile file;
};

/// The GPU code of one kernel: source, and machine code for some GPUs.
struct CudaCodeManifest {
  struct Cubin {
    std::string architecture; ///< "sm_90a"
    PackageFile file;
  };
  KernelIndex kernel = kNoKernel;
  PackageFile source;
  int64_t dynamicShared = 0; ///< bytes per block to be asked for at a launch
  std::vector<Cubin> cubins;
};

/// A device header that sources include by `name`.
struct CudaHeaderManifest {
  std::string name;
  PackageFile file;
};

struct Manifest {
  std::string model;
  std::string fingerprint; ///< of the graph; "" where the package has none
  std::vector<LayerManifest> layers;
  std::vector<KernelManifest> kernels;
  std::vector<CpuCodeManifest> cpu;
  std::vector<CudaCodeManifest> cuda;
  std::vector<CudaHeaderManifest> cudaHeaders;
};

/// Parses and checks; throws a Failure with one clear line.
Manifest parseManifest(std::string_view json);

} // namespace sinkstate::runtime

#endif
