//===- KernelCompiler.cpp - Sources to machine code of one GPU ------------===//

#include "cuda/KernelCompiler.h"

#include "cache/KernelDump.h"
#include "capi/Failure.h"
#include "environment/Environment.h"
#include "observe/Log.h"
#include "sinkstate/routines.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <system_error>
#include <thread>

namespace sinkstate::runtime::cuda {
namespace {

template <typename T> T valueOrFail(Result<T> result, ss_result code) {
  if (!result)
    fail(code, result.error());
  return std::move(*result);
}

/// The cache's lines are messages like others; where nobody has asked for those,
/// they go where its own user looks.
void logOfCache(cache::LogLevel level, std::string_view line) {
  if (logs(SS_LOG_OFF))
    writeLog(level == cache::LogLevel::Notice ? SS_LOG_INFO : SS_LOG_WARNING,
             "cache", line);
  else
    cache::logToStandardError(level, line);
}

ss_result codeOf(nvrtc::CompileFault fault, bool overridden) {
  switch (fault) {
  case nvrtc::CompileFault::Architecture:
  case nvrtc::CompileFault::Installation:
    return SS_DEVICE_UNAVAILABLE;
  case nvrtc::CompileFault::Source:
    return overridden ? SS_INVALID_ARGUMENT : SS_INTERNAL;
  case nvrtc::CompileFault::Memory:
    return SS_OUT_OF_MEMORY;
  case nvrtc::CompileFault::Call:
    break;
  }
  return SS_INTERNAL;
}

} // namespace

/// A cubin, or why there is none.
struct KernelCompiler::Compiled {
  std::string cubin;
  std::string error; ///< empty: there is a cubin
  ss_result code = SS_OK;
};

KernelCompiler::KernelCompiler(const Context &context)
    : architecture(context.architecture()),
      gpu(text("GPU ", context.ordinal(), ", ", context.name())),
      library(valueOrFail(nvrtc::Library::get(), SS_DEVICE_UNAVAILABLE)),
      cache(valueOrFail(cache::KernelCache::fromEnvironment(logOfCache),
                        SS_INVALID_ARGUMENT)) {}

KernelCompiler::Compiled KernelCompiler::compileOne(
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
  ss_result code = SS_INTERNAL;
  auto compile = [&](const cache::KernelKeyInputs &wanted)
      -> Result<cache::Blobs> {
    nvrtc::CompileInput input = {source.name + ".cu", wanted.source, headers,
                                 wanted.architecture, wanted.flags};
    const bool overridden = wanted.source != source.text;
    if (overridden) { // messages and line numbers are of the user's file
      input.name = cache::overrideFile(
          environment::read(environment::overrideFolder), source.name);
      input.advice = "correct it, or take it out of SS_OVERRIDE_DIR";
    }
    nvrtc::CompileFault fault = nvrtc::CompileFault::Call;
    Result<std::string> cubin = library->compile(input, nullptr, &fault);
    if (!cubin) {
      code = codeOf(fault, overridden);
      Error error = cubin.takeError();
      if (fault == nvrtc::CompileFault::Architecture)
        error.message += " (" + gpu + ")";
      return error;
    }
    cache::Blobs blobs;
    blobs[blob] = std::move(*cubin);
    return blobs;
  };
  Result<cache::CachedKernel> kernel = cache->getOrCompile(inputs, compile);
  if (!kernel)
    return {"", kernel.error(), code};
  return {std::move(kernel->blobs[blob]), "", SS_OK};
}

std::vector<std::string> KernelCompiler::compile(
    const std::vector<KernelSource> &sources,
    const std::vector<nvrtc::Header> &headers) const {
  std::vector<Compiled> results(sources.size());
  // The longest first: begun last, one of them would keep a thread busy alone.
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sources[a].text.size() > sources[b].text.size();
  });
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t at; (at = next++) < order.size();) {
      const size_t i = order[at];
      try {
        results[i] = compileOne(sources[i], headers);
      } catch (const std::exception &error) {
        results[i] = {"", "kernel '" + sources[i].name + "': " + error.what(),
                      SS_INTERNAL};
      }
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
  for (Compiled &result : results) {
    if (result.code != SS_OK)
      fail(result.code, result.error);
    cubins.push_back(std::move(result.cubin));
  }
  return cubins;
}

} // namespace sinkstate::runtime::cuda
