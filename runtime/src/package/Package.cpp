//===- Package.cpp - A loaded kernel package ------------------------------===//

#include "package/Package.h"

#include "capi/Failure.h"
#include "hash/Sha256.h"
#include "package/CpuIsa.h"

#include <dlfcn.h>

#include <fstream>
#include <iterator>
#include <optional>

namespace sinkstate::runtime {
namespace {

/// The file's bytes, or nothing if it cannot be read to its end.
std::optional<std::string> readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string content;
  if (file)
    content.assign(std::istreambuf_iterator<char>(file), {});
  if (!file || file.bad())
    return std::nullopt;
  return content;
}

std::string readManifest(const std::string &folder) {
  std::string path = folder + "/manifest.json";
  std::optional<std::string> content = readFile(path);
  if (!content)
    fail(SS_NOT_FOUND, "'", path,
         "' cannot be read, expected a kernel package folder: give the folder "
         "that ss-compile wrote");
  return std::move(*content);
}

/// Null where only the GPU code of the package can run here.
const CpuCodeManifest *bestCpuCode(const Manifest &manifest) {
  const int host = hostCpuIsaLevel();
  const CpuCodeManifest *best = nullptr;
  std::string offered;
  for (const CpuCodeManifest &code : manifest.cpu) {
    offered += (offered.empty() ? "" : ", ") + code.isa;
    int level = cpuIsaLevel(code.isa);
    if (level <= host && (!best || level > cpuIsaLevel(best->isa)))
      best = &code;
  }
  if (manifest.cpu.empty() && manifest.cuda.empty())
    fail(SS_NOT_FOUND, "the package of model '", manifest.model,
         "' has no CPU code, expected an entry in 'cpu': compile it for this "
         "processor");
  if (!best && manifest.cuda.empty())
    fail(SS_VERSION_MISMATCH, "the package of model '", manifest.model,
         "' has CPU code for ", offered, ", but this processor runs ",
         host > 1 ? text("x86-64-v", host) : "none of its levels",
         ": compile it for a lower level");
  return best;
}

} // namespace

void Package::LibraryCloser::operator()(void *handle) const noexcept {
  dlclose(handle);
}

std::shared_ptr<const Package> Package::open(const std::string &folder) {
  auto package = std::make_shared<Package>();
  const std::string manifest = readManifest(folder);
  try {
    package->content = parseManifest(manifest);
  } catch (const Failure &failure) { // whose line begins with the file's name
    fail(failure.code(), folder, "/", failure.what());
  }
  package->folder = folder;
  if (const CpuCodeManifest *code = bestCpuCode(package->content))
    package->loadCpuLibrary(code->file);
  return package;
}

std::string Package::read(const PackageFile &file) const {
  std::string path = folder + "/" + file.path;
  std::optional<std::string> bytes = readFile(path);
  if (!bytes)
    fail(SS_NOT_FOUND, "'", path,
         "' cannot be opened, expected a readable file of the package: build "
         "the package again");
  if (std::string hash = sha256Hex(*bytes); hash != file.sha256)
    fail(SS_MALFORMED_PACKAGE, "'", path, "' has sha256 ", hash,
         ", expected ", file.sha256,
         " (manifest.json): the file was changed or cut, copy the package "
         "again");
  return std::move(*bytes);
}

void Package::requireCpuCode() const {
  if (cpuEntries.empty())
    fail(SS_NOT_FOUND, "the package of model '", content.model,
         "' has no CPU code for this processor, expected an entry in 'cpu' "
         "that it runs: compile it for this processor or use the CUDA device");
}

void Package::loadCpuLibrary(const PackageFile &file) {
  (void)read(file);
  std::string path = folder + "/" + file.path;
  // A name without a slash would be searched for in the system's folders.
  if (path.front() != '/' && path.front() != '.')
    path = "./" + path;
  library.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    const char *why = dlerror();
    fail(SS_MALFORMED_PACKAGE, "'", path, "' cannot be loaded (",
         why ? why : "no reason given", "): build the package again");
  }
  for (const KernelManifest &kernel : content.kernels) {
    void *symbol = dlsym(library.get(), kernel.name.c_str());
    if (!symbol)
      fail(SS_NOT_FOUND, "'", path, "' has no symbol '", kernel.name,
           "', expected every kernel of manifest.json: build the package "
           "again");
    cpuEntries.push_back(reinterpret_cast<ss_cpu_kernel>(symbol));
  }
}

std::shared_ptr<const Package> Package::fromMemory(std::string_view manifest,
                                                   ss_kernel_lookup lookup,
                                                   void *context) {
  auto package = std::make_shared<Package>();
  package->content = parseManifest(manifest);
  for (const KernelManifest &kernel : package->content.kernels) {
    ss_cpu_kernel entry = lookup(context, kernel.name.c_str());
    if (!entry)
      fail(SS_NOT_FOUND, "the lookup function has no kernel '", kernel.name,
           "', expected every kernel of the manifest: compile the graph and "
           "the manifest together");
    package->cpuEntries.push_back(entry);
  }
  return package;
}

} // namespace sinkstate::runtime
