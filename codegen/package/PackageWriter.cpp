//===- PackageWriter.cpp - kernel packages on disk ------------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "codegen/package/PackageWriter.h"

#include "codegen/cpu/CpuCodegen.h"
#include "codegen/cuda/CudaPrinter.h"
#include "codegen/cuda/device/DeviceHeaders.h"
#include "codegen/package/KernelModules.h"
#include "codegen/package/MachineCode.h"
#include "codegen/package/Manifest.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using llvm::Error;
using llvm::json::Array;
using llvm::json::Object;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace sinkstate {

static Error failedTo(const llvm::Twine &what, StringRef file,
                      std::error_code code) {
  return llvm::createStringError(code, what + " '" + file +
                                           "': " + code.message());
}

/// The manifest is the first thing that a reader of a package looks at.
static bool isPackage(StringRef folder) {
  SmallString<128> manifest(folder);
  path::append(manifest, "manifest.json");
  auto text = llvm::MemoryBuffer::getFile(manifest);
  return text && (*text)->getBuffer().contains("\"sinkstate-package\"");
}

static bool isEmptyFolder(StringRef folder) {
  std::error_code code;
  const bool isEmpty =
      fs::directory_iterator(folder, code) == fs::directory_iterator();
  return !code && isEmpty;
}

Error checkPackageFolder(StringRef folder) {
  if (folder.empty())
    return llvm::createStringError(
        "the package's folder is '', expected a name");
  fs::file_status status;
  if (std::error_code code = fs::status(folder, status);
      code && code != std::errc::no_such_file_or_directory)
    return failedTo("cannot look at", folder, code);
  if (!fs::exists(status) || isPackage(folder) ||
      (fs::is_directory(status) && isEmptyFolder(folder)))
    return Error::success();
  return llvm::createStringError(
      "'" + folder + "' is " +
      (fs::is_directory(status) ? "a folder with other things in it"
                                : "no folder") +
      ", expected a new folder, an empty one or a package to replace");
}

static Error checkLevels(const PackageOptions &options) {
  const auto &known = PackageOptions().cpuLevels;
  for (size_t i = 0; i < options.cpuLevels.size(); ++i) {
    const std::string &level = options.cpuLevels[i];
    if (!llvm::is_contained(known, level))
      return llvm::createStringError(
          "instruction set '" + level +
          "' is unknown, expected x86-64-v2, x86-64-v3 or x86-64-v4");
    if (llvm::is_contained(ArrayRef(options.cpuLevels).take_front(i), level))
      return llvm::createStringError("instruction set '" + level +
                                     "' is named twice, expected it once");
  }
  return Error::success();
}

/// Readable by all, as the creator's mask has it: an engine may run as someone
/// else.
static std::error_code createFolders(StringRef folder) {
  return fs::create_directories(folder, /*IgnoreExisting=*/true, fs::all_all);
}

namespace {
/// A folder beside the final one that is renamed to it at the end, or removed.
class StagedFolder {
public:
  static llvm::Expected<StagedFolder> create(StringRef target) {
    SmallString<128> parent(path::parent_path(target));
    if (parent.empty())
      parent = ".";
    if (std::error_code code = createFolders(parent))
      return failedTo("cannot create the folder", parent, code);
    SmallString<128> model(target);
    model += ".tmp-%%%%%%%%";
    SmallString<128> staging;
    fs::createUniquePath(model, staging, /*MakeAbsolute=*/false);
    if (std::error_code code = fs::create_directory(
            staging, /*IgnoreExisting=*/false, fs::all_all))
      return failedTo("cannot create the folder", staging, code);
    return StagedFolder(staging, target);
  }
  StagedFolder(StagedFolder &&other)
      : staging(std::move(other.staging)), target(std::move(other.target)) {
    other.staging.clear();
  }
  ~StagedFolder() {
    if (!staging.empty())
      fs::remove_directories(staging);
  }

  std::string file(StringRef name) const {
    SmallString<128> full(staging);
    path::append(full, name);
    return std::string(full);
  }

  Error write(StringRef name, StringRef text) const {
    std::string full = file(name);
    if (std::error_code code = createFolders(path::parent_path(full)))
      return failedTo("cannot create the folder of", full, code);
    std::error_code code;
    llvm::raw_fd_ostream stream(full, code);
    if (!code) {
      stream << text;
      stream.close();
      code = stream.error();
      stream.clear_error();
    }
    return code ? failedTo("cannot write", full, code) : Error::success();
  }

  Error publish() {
    // A folder cannot be renamed over another one: the old package steps aside.
    if (Error error = checkPackageFolder(target)) // somebody else's by now
      return error;
    SmallString<128> old;
    if (fs::exists(target)) {
      fs::createUniquePath(target + ".old-%%%%%%%%", old, false);
      if (std::error_code code = fs::rename(target, old))
        return failedTo("cannot replace the package", target, code);
    }
    if (std::error_code code = fs::rename(staging, target)) {
      if (!old.empty())
        fs::rename(old, target);
      return failedTo("cannot publish the package", target, code);
    }
    staging.clear();
    if (!old.empty())
      fs::remove_directories(old);
    return Error::success();
  }

private:
  StagedFolder(StringRef staging, StringRef target)
      : staging(staging), target(target) {}
  std::string staging, target;
};
} // namespace

static Error writeCpuCode(ModuleOp kernels, const PackageOptions &options,
                          const StagedFolder &folder, Array &list) {
  for (const std::string &level : options.cpuLevels) {
    std::string name = "cpu/" + level + ".so";
    std::string full = folder.file(name);
    if (std::error_code code = createFolders(path::parent_path(full)))
      return failedTo("cannot create the folder of", full, code);
    if (Error error = cpu::emitSharedLibrary(
            kernels, cpu::CpuTarget::level(level), full))
      return error;
    auto bytes = llvm::MemoryBuffer::getFile(full);
    if (!bytes)
      return failedTo("cannot read back", full, bytes.getError());
    list.push_back(Object{{"isa", level},
                          {"file", name},
                          {"sha256", sha256((*bytes)->getBuffer())}});
  }
  return Error::success();
}

/// Adds to each entry of `sources`, which belong to `texts`, its machine code.
static Error writeMachineCode(ArrayRef<std::string> texts,
                              ArrayRef<std::string> architectures,
                              const StagedFolder &folder, Array &sources) {
  std::vector<MachineCodeInput> inputs;
  for (size_t i = 0; i < texts.size(); ++i)
    for (const std::string &architecture : architectures)
      inputs.push_back({sources[i].getAsObject()->getString("kernel")->str(),
                        texts[i], architecture});
  auto code = compileToMachineCode(inputs);
  if (!code)
    return code.takeError();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const MachineCodeInput &input = inputs[i];
    std::string name = "cuda/" + input.kernel + "." + input.architecture + ".cubin";
    if (Error error = folder.write(name, (*code)[i]))
      return error;
    Object &entry = *sources[i / architectures.size()].getAsObject();
    if (!entry.get("cubins"))
      entry["cubins"] = Array();
    entry.getArray("cubins")->push_back(Object{{"arch", input.architecture},
                                               {"file", name},
                                               {"sha256", sha256((*code)[i])}});
  }
  return Error::success();
}

static Error writeCudaCode(ModuleOp kernels, ArrayRef<std::string> architectures,
                           const StagedFolder &folder, Array &sources,
                           Array &headers) {
  std::vector<std::string> texts;
  for (auto kernel : kernels.getOps<ssk::KernelOp>()) {
    FailureOr<std::string> text = cuda::printCudaKernel(kernel);
    if (failed(text))
      return llvm::createStringError("kernel '" + kernel.getName() +
                                     "' could not be printed as CUDA C++");
    std::string name = ("cuda/" + kernel.getName() + ".cu").str();
    if (Error error = folder.write(name, *text))
      return error;
    Object entry{{"kernel", kernel.getName()},
                 {"file", name},
                 {"sha256", sha256(*text)}};
    cuda::CudaKernelInfo info = cuda::getCudaKernelInfo(kernel);
    if (info.isSharedDynamic)
      entry["dynamic_shared"] = info.sharedBytes;
    sources.push_back(std::move(entry));
    texts.push_back(std::move(*text));
  }
  if (!architectures.empty())
    if (Error error = writeMachineCode(texts, architectures, folder, sources))
      return error;
  for (const DeviceHeader &header : getDeviceHeaderTexts()) {
    std::string name = "cuda/include/" + header.name;
    if (Error error = folder.write(name, header.text))
      return error;
    headers.push_back(Object{{"name", header.name},
                             {"file", name},
                             {"sha256", sha256(header.text)}});
  }
  return Error::success();
}

Error writePackage(ModuleOp graph, const PackageOptions &options,
                   StringRef folder) {
  if (Error error = checkLevels(options))
    return error;
  if (Error error = checkArchitectures(options.cubins))
    return error;
  if (!graph.getOps<ssk::KernelOp>().empty())
    return llvm::createStringError(
        "kernel '" + (*graph.getOps<ssk::KernelOp>().begin()).getName() +
        "' is lowered already, expected a graph such as ss-import makes");
  if (Error error = checkPackageFolder(folder))
    return error;
  KernelOptions wanted;
  wanted.init = options.init;
  wanted.initWhereDense = options.initWhereDense && options.cuda;
  wanted.initWarps = options.initWarps;
  wanted.compactBefore = options.compactBefore;
  wanted.explain = options.explain && !options.cpuLevels.empty();
  llvm::Expected<OwningOpRef<ModuleOp>> kernels =
      buildKernels(graph, KernelTarget::cpu, wanted);
  if (!kernels)
    return kernels.takeError();
  OwningOpRef<ModuleOp> cudaKernels;
  if (options.cuda) {
    wanted.explain = options.explain;
    auto built = buildKernels(graph, KernelTarget::cuda, wanted);
    if (!built)
      return built.takeError();
    cudaKernels = std::move(*built);
  }
  // Names and arguments are the same for both targets; the size of a block is
  // that of the CUDA sources.
  FailureOr<Object> manifest =
      describeModule(options.cuda ? *cudaKernels : **kernels,
                     fingerprintGraph(graph));
  if (failed(manifest))
    return llvm::createStringError(
        "the graph cannot be described; see the diagnostics above");

  llvm::Expected<StagedFolder> staged = StagedFolder::create(folder);
  if (!staged)
    return staged.takeError();
  Array cpuList, cudaList, headerList;
  if (Error error = writeCpuCode(**kernels, options, *staged, cpuList))
    return error;
  if (options.cuda)
    if (Error error = writeCudaCode(*cudaKernels, options.cubins, *staged,
                                    cudaList, headerList))
      return error;
  (*manifest)["cpu"] = std::move(cpuList);
  (*manifest)["cuda"] = std::move(cudaList);
  (*manifest)["cuda_headers"] = std::move(headerList);
  if (Error error =
          staged->write("manifest.json", printManifest(std::move(*manifest))))
    return error;
  return staged->publish();
}

} // namespace sinkstate
