//===- Measure.cpp - Compiles a folder of printed kernels -----------------===//

#include "Measure.h"

#include "cache/KernelCache.h"
#include "codegen/cuda/CompileCheck.h"
#include "codegen/cuda/device/DeviceHeaders.h"
#include "nvrtc/Nvrtc.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <thread>

using namespace ss_kernels;
using sinkstate::Error;
using sinkstate::Result;
namespace cache = sinkstate::cache;
namespace nvrtc = sinkstate::nvrtc;

namespace {

/// The blob that a compilation leaves in the cache.
const char *const kBlob = "resources";

struct Job {
  std::string kernel, source, architecture;
};

/// What the kernels of one file take: its own, and where it has parts NAME_parts.
using FileResources = std::map<std::string, Resources>;

/// A line for each kernel: name, registers, spills, stack, shared.
std::string encode(const FileResources &kernels) {
  std::ostringstream text;
  for (const auto &[name, use] : kernels)
    text << name << ' ' << use.registers << ' ' << use.spillBytes << ' '
         << use.stackBytes << ' ' << use.sharedBytes << '\n';
  return text.str();
}

FileResources decode(const std::string &text) {
  FileResources kernels;
  std::istringstream lines(text);
  std::string name;
  Resources use;
  while (lines >> name >> use.registers >> use.spillBytes >> use.stackBytes >>
         use.sharedBytes)
    kernels[name] = use;
  return kernels;
}

Result<cache::Blobs> compileJob(const Job &job) {
  auto found = sinkstate::cuda::compileForCheck(job.kernel + ".cu", job.source,
                                                job.architecture);
  if (!found)
    return found.takeError();
  FileResources kernels;
  for (const auto &use : *found)
    kernels[use.kernel] = {use.registers, use.spillBytes, use.stackBytes,
                           use.sharedBytes};
  const size_t known =
      kernels.count(job.kernel) + kernels.count(job.kernel + "_parts");
  if (!kernels.count(job.kernel) || known != kernels.size())
    return Error{job.kernel + ".cu: found " + std::to_string(found->size()) +
                 " kernels, expected one with the file's name, and at most one "
                 "more, with _parts behind it"};
  return cache::Blobs{{kBlob, encode(kernels)}};
}

Result<FileResources> measureJob(const Job &job, cache::KernelCache &cache,
                             const std::string &version) {
  cache::KernelKeyInputs inputs;
  inputs.kernelName = job.kernel;
  inputs.source = job.source;
  for (const sinkstate::DeviceHeader &header :
       sinkstate::getDeviceHeaderTexts())
    inputs.headers.push_back({header.name, header.text});
  inputs.flags = nvrtc::kernelFlags();
  // The figures depend on the compiler and its input, not on this program.
  inputs.buildId = "kernel-resources-2";
  inputs.nvrtcVersion = version;
  inputs.architecture = job.architecture;
  Result<cache::CachedKernel> kernel = cache.getOrCompile(
      inputs, [&](const cache::KernelKeyInputs &) { return compileJob(job); });
  if (!kernel)
    return Error{job.kernel + " " + job.architecture + ": " + kernel.error()};
  return decode(kernel->blobs[kBlob]);
}

Result<std::vector<Job>>
listJobs(const std::string &folder,
         const std::vector<std::string> &architectures) {
  std::vector<Job> jobs;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".cu")
      continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string source((std::istreambuf_iterator<char>(file)), {});
    for (const std::string &architecture : architectures)
      jobs.push_back({entry.path().stem().string(), source, architecture});
  }
  if (error || jobs.empty())
    return Error{"'" + folder + "': found no .cu file" +
                 (error ? " (" + error.message() + ")" : "") +
                 ", expected a folder of printed kernels"};
  return jobs;
}

} // namespace

std::string ss_kernels::nvrtcUnavailable() {
  auto library = nvrtc::Library::get();
  return library ? "" : library.error();
}

Result<ResourceTable>
ss_kernels::measure(const std::string &folder,
                    const std::vector<std::string> &architectures) {
  auto library = nvrtc::Library::get();
  if (!library)
    return library.takeError();
  auto cache = cache::KernelCache::fromEnvironment();
  if (!cache)
    return cache.takeError();
  auto jobs = listJobs(folder, architectures);
  if (!jobs)
    return jobs.takeError();
  ResourceTable table;
  table.nvrtc = (*library)->versionText();
  std::string firstError;
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < jobs->size();) {
      const Job &job = (*jobs)[i];
      Result<FileResources> found = measureJob(job, **cache, table.nvrtc);
      std::lock_guard<std::mutex> lock(mutex);
      if (!found) {
        if (firstError.empty())
          firstError = found.error();
        continue;
      }
      for (const auto &[name, use] : *found)
        table.kernels[name][job.architecture] = use;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  if (!firstError.empty())
    return Error{firstError};
  return table;
}
