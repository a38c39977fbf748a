//===- KernelCompiler.cpp - Sources to machine code of one GPU ------------===//

#include "cuda/KernelCompiler.h"

#include "capi/Failure.h"
#include "environment/Environment.h"
#include "sinkstate/routines.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>

namespace sinkstate::runtime::cuda {
namespace {

template <typename T> T valueOrFail(Result<T> result, ss_result code) {
  if (!result)
    fail(code, result.error());
  return std::move(*result);
}

} // namespace

KernelCompiler::KernelCompiler(std::string target)
    : architecture(std::move(target)),
      library(valueOrFail(
          nvrtc::Library::get(environment::read(environment::nvrtcLibrary)),
          SS_DEVICE_UNAVAILABLE)),
      cache(valueOrFail(cache::KernelCache::fromEnvironment(),
                        SS_INVALID_ARGUMENT)) {}

Result<std::string> KernelCompiler::compileOne(
    const KernelSource &source,
    const std::vector<nvrtc::Header> &headers) const {
  cache::KernelKeyInputs inputs;
  inputs.kernelName = source.name;
  inputs.source = source.text;
  for (const nvrtc::Header &header : headers)
    inputs.headers.push_back({header.name, header.text});
  inputs.flags = nvrtc::kernelFlags();
  inputs.nvrtcVersion = library->versionText();
  inputs.architecture = architecture;
  inputs.abiVersion = int32_t(SS_ABI_VERSION);
  const std::string blob = source.name + ".cubin";
  auto compile = [&](const cache::KernelKeyInputs &wanted)
      -> Result<cache::Blobs> {
    Result<std::string> cubin =
        library->compile({source.name + ".cu", wanted.source, headers,
                          wanted.architecture, wanted.flags});
    if (!cubin)
      return cubin.takeError();
    cache::Blobs blobs;
    blobs[blob] = std::move(*cubin);
    return blobs;
  };
  Result<cache::CachedKernel> kernel = cache->getOrCompile(inputs, compile);
  if (!kernel)
    return kernel.takeError();
  return std::move(kernel->blobs[blob]);
}

std::vector<std::string> KernelCompiler::compile(
    const std::vector<KernelSource> &sources,
    const std::vector<nvrtc::Header> &headers) const {
  std::vector<std::optional<Result<std::string>>> results(sources.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < sources.size();)
      try {
        results[i] = compileOne(sources[i], headers);
      } catch (const std::exception &error) {
        results[i] = Error{"kernel '" + sources[i].name + "': " + error.what()};
      }
  };
  const size_t processors = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  try {
    for (size_t i = 1; i < std::min(processors, sources.size()); ++i)
      threads.emplace_back(work);
  } catch (const std::system_error &) {
    // The process may have no more: those that are there do all of it.
  }
  work();
  for (std::thread &thread : threads)
    thread.join();
  std::vector<std::string> cubins;
  for (std::optional<Result<std::string>> &result : results)
    cubins.push_back(valueOrFail(std::move(*result), SS_DEVICE_ERROR));
  return cubins;
}

} // namespace sinkstate::runtime::cuda
