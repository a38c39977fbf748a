//===- PackageKernels.cpp - A package's kernels on a GPU ------------------===//

#include "cuda/PackageKernels.h"

#include "capi/Failure.h"

#include <algorithm>
#include <optional>

namespace sinkstate::runtime::cuda {
namespace {

constexpr unsigned kWarp = 32;
/// How many times the programs that a GPU holds at once with a warp for each part
/// may be, for them to be run so. Beyond that there are warps enough without, and
/// meeting only costs. docs/rationale.md has what was measured.
constexpr int64_t kWavesByParts = 2;
/// Kernels in a row that a GPU must be able to hold at once for each to begin
/// beside the end of the one before it. Where the blocks of the second wait for
/// room they come in between those of the first, which costs more than a kernel's
/// beginning: docs/rationale.md.
constexpr int64_t kOverlapped = 2;
/// Blocks in the first dimension of a grid.
constexpr int64_t kMostBlocks = INT32_MAX;

const CudaCodeManifest &codeOf(const Manifest &manifest, KernelIndex kernel) {
  for (const CudaCodeManifest &code : manifest.cuda)
    if (code.kernel == kernel)
      return code;
  const std::string &name = manifest.kernels[size_t(kernel)].name;
  if (manifest.cuda.empty())
    fail(SS_NOT_FOUND, "the package of model '", manifest.model,
         "' has no GPU code, expected an entry in 'cuda' for every kernel: "
         "compile it for CUDA, and open it from its folder");
  fail(SS_NOT_FOUND, "the package of model '", manifest.model,
       "' has no GPU code for kernel '", name,
       "', expected an entry in 'cuda': compile it for CUDA again");
}

/// Of the GPU's own architecture, else without the features that only it has.
std::optional<std::string> ownCubin(const Package &package,
                                    const CudaCodeManifest &code,
                                    const Context &context) {
  const CudaCodeManifest::Cubin *found = nullptr;
  for (const CudaCodeManifest::Cubin &cubin : code.cubins)
    if (context.runs(cubin.architecture) &&
        (!found || cubin.architecture == context.architecture()))
      found = &cubin;
  if (!found)
    return std::nullopt;
  return package.read(found->file);
}

} // namespace

PackageKernels::PackageKernels(std::shared_ptr<const Context> owner,
                               const Package &package,
                               const KernelCompiler &compiler)
    : context(std::move(owner)) {
  const Manifest &manifest = package.manifest();
  const size_t count = manifest.kernels.size();
  std::vector<std::string> images(count);
  std::vector<KernelSource> sources;
  std::vector<size_t> compiled;
  for (size_t i = 0; i < count; ++i) {
    const CudaCodeManifest &code = codeOf(manifest, KernelIndex(i));
    if (auto cubin = ownCubin(package, code, *context)) {
      images[i] = std::move(*cubin);
      continue;
    }
    sources.push_back({manifest.kernels[i].name, package.read(code.source)});
    compiled.push_back(i);
  }
  std::vector<nvrtc::Header> headers;
  if (!sources.empty())
    for (const CudaHeaderManifest &header : manifest.cudaHeaders)
      headers.push_back({header.name, package.read(header.file)});
  std::vector<std::string> cubins = compiler.compile(sources, headers);
  for (size_t i = 0; i < compiled.size(); ++i)
    images[compiled[i]] = std::move(cubins[i]);

  modules.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const KernelManifest &kernel = manifest.kernels[i];
    const int64_t shared =
        codeOf(manifest, KernelIndex(i)).dynamicShared;
    modules.emplace_back(context, kernel.name, images[i]);
    Kernel loaded;
    loaded.function = modules.back().function(kernel.name.c_str(), shared);
    loaded.programsPerBlock = kernel.programsPerBlock;
    loaded.warps = kernel.programsPerBlock * kernel.warps;
    loaded.dynamicShared = unsigned(shared);
    loaded.arguments = kernel.arguments;
    loaded.loops = kernel.loops;
    // Initialisations take long, and more or less so by head: blocks that come as
    // others end share them better than those of a loop.
    if (kernel.loops && kernel.role != KernelRole::Init)
      loaded.enoughBlocks =
          residentBlocks(loaded.function, loaded.warps, shared);
    loaded.parts = kernel.parts;
    if (kernel.parts > 1)
      loadParts(loaded, kernel.name);
    kernels.push_back(std::move(loaded));
  }
}

void PackageKernels::loadParts(Kernel &kernel, const std::string &name) const {
  kernel.byParts = modules.back().function((name + "_parts").c_str());
  const int64_t resident = residentBlocks(kernel.byParts, kernel.parts, 0);
  kernel.fewPrograms = kWavesByParts * resident;
  if (context->overlapsKernels())
    kernel.overlappedPrograms = resident / kOverlapped;
}

int64_t PackageKernels::residentBlocks(CUfunction function, int64_t warps,
                                       int64_t shared) const {
  int blocks = 0;
  SS_CUDA(context->driver(),
          cuOccupancyMaxActiveBlocksPerMultiprocessor(
              &blocks, function, int(warps * kWarp), size_t(shared)));
  return int64_t(std::max(1, blocks)) * context->multiprocessors();
}

void PackageKernels::launch(KernelIndex index, ArgumentValues &values,
                            int64_t programs, CUstream stream,
                            int64_t mostBlocks) const {
  const Kernel &kernel = kernels[size_t(index)];
  // Of one that does not loop fewer blocks would leave programs out.
  const int64_t blocks = std::min(
      {(programs + kernel.programsPerBlock - 1) / kernel.programsPerBlock,
       kernel.enoughBlocks, kernel.loops ? mostBlocks : INT64_MAX});
  if (blocks > kMostBlocks)
    fail(SS_INVALID_ARGUMENT, programs, " states in one batch, expected at most ",
         kMostBlocks, " blocks of ", kernel.programsPerBlock,
         ": decode in smaller batches");
  start(kernel, values.bindLaunch(kernel.arguments, programs), programs,
        unsigned(blocks), stream);
}

/// A kernel with parts has one program a block, and no dynamic memory.
void PackageKernels::start(const Kernel &kernel, void **parameters,
                           int64_t programs, unsigned blocks,
                           CUstream stream) const {
  const bool byParts = programs <= kernel.fewPrograms;
  const int64_t warps = byParts ? kernel.parts : kernel.warps;
  CUlaunchAttribute beside = {kLaunchBesideEnd, 0, {1}};
  CUlaunchConfig config = {blocks, 1, 1, unsigned(warps) * kWarp, 1, 1,
                           kernel.dynamicShared, stream, &beside,
                           programs <= kernel.overlappedPrograms ? 1u : 0u};
  SS_CUDA(context->driver(),
          cuLaunchKernelEx(&config,
                           byParts ? kernel.byParts : kernel.function,
                           parameters, nullptr));
}

} // namespace sinkstate::runtime::cuda
