//===- Nvrtc.cpp - CUDA C++ to machine code, without a toolkit ------------===//

#include "nvrtc/Nvrtc.h"

#include "environment/Environment.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <type_traits>

namespace sinkstate::nvrtc {

// The types of nvrtc.h that the functions need.
using nvrtcProgram = struct _nvrtcProgram *;
using nvrtcResult = int;
constexpr nvrtcResult kSuccess = 0, kOutOfMemory = 1, kCompilationError = 6,
                      kBuiltinOperationFailure = 7;

struct Library::Functions {
#define SS_NVRTC_SYMBOL(NAME, PARAMETERS) nvrtcResult(*NAME) PARAMETERS;
#include "nvrtc/NvrtcSymbols.def"
#undef SS_NVRTC_SYMBOL
  const char *(*nvrtcGetErrorString)(nvrtcResult);
};

namespace {

// Newest first: an older NVRTC may not know the GPU.
constexpr const char *kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                  "libnvrtc.so"};
// The first errors say what is wrong; the rest follows from them.
constexpr size_t kLongestLog = 4096;

std::vector<std::string> candidatePaths() {
  std::vector<std::string> folders = {""};
  for (const auto *variable : {&environment::cudaHome, &environment::cudaPath})
    if (std::string home = environment::read(*variable); !home.empty())
      folders.push_back(home + "/lib64/");
  folders.push_back("/usr/local/cuda/lib64/");
  std::vector<std::string> paths;
  for (const std::string &folder : folders)
    for (const char *name : kNames)
      paths.push_back(folder + name);
  return paths;
}

void *openFirst(const std::vector<std::string> &paths, std::string &opened,
                std::string &firstReason) {
  // NVRTC does not return all of its memory when it is unloaded: it stays.
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  for (const std::string &path : paths) {
    if (void *handle = dlopen(path.c_str(), kMode)) {
      opened = path;
      return handle;
    }
    const char *why = dlerror();
    if (firstReason.empty() && why)
      firstReason = why;
  }
  return nullptr;
}

/// The file behind a handle, where the loader says it.
std::string fileOf(void *handle, const std::string &opened) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && *map->l_name)
    return map->l_name;
  return opened;
}

/// Destroys the program at the end of a scope.
struct ProgramOwner {
  nvrtcProgram program = nullptr;
  nvrtcResult (*destroy)(nvrtcProgram *);
  ~ProgramOwner() {
    if (program)
      destroy(&program);
  }
};

} // namespace

std::vector<std::string> kernelFlags() {
  // No fast math: a NaN has to stay visible. Line numbers cost nothing at run
  // time and are what the sanitizer and the profiler point to.
  return {"--std=c++17", "--generate-line-info"};
}

Library::~Library() {
  if (handle)
    dlclose(handle);
}

Result<std::shared_ptr<const Library>> Library::get(const std::string &path) {
  static std::mutex mutex;
  static std::shared_ptr<const Library> library;
  std::lock_guard lock(mutex);
  if (library)
    return library;
  Result<std::shared_ptr<const Library>> opened =
      open(path.empty() ? environment::read(environment::nvrtcLibrary) : path);
  if (opened)
    library = *opened;
  return opened;
}

Result<std::shared_ptr<const Library>> Library::open(const std::string &path) {
  std::vector<std::string> paths =
      path.empty() ? candidatePaths() : std::vector<std::string>{path};
  std::shared_ptr<Library> library(new Library);
  std::string opened, why;
  library->handle = openFirst(paths, opened, why);
  if (!library->handle) {
    std::string looked;
    for (const std::string &candidate : paths)
      looked += (looked.empty() ? "'" : ", '") + candidate + "'";
    return Error{"no NVRTC library: looked for " + looked + " (" + why +
                 "), expected CUDA's run-time compiler 12.4 or newer: install "
                 "the package cuda-nvrtc, or set CUDA_HOME or SS_NVRTC"};
  }
  library->file = fileOf(library->handle, opened);
  library->functions = std::make_unique<Functions>();
  Functions &f = *library->functions;
  const char *missing = nullptr;
  auto resolve = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library->handle, name));
    if (!function && !missing)
      missing = name;
  };
#define SS_NVRTC_SYMBOL(NAME, PARAMETERS) resolve(f.NAME, #NAME);
#include "nvrtc/NvrtcSymbols.def"
#undef SS_NVRTC_SYMBOL
  resolve(f.nvrtcGetErrorString, "nvrtcGetErrorString");
  if (missing)
    return Error{"'" + library->file + "' has no function '" + missing +
                 "', expected CUDA's run-time compiler 12.4 or newer: update "
                 "NVRTC"};
  if (Status status = library->readVersion())
    return std::move(*status);
  return std::shared_ptr<const Library>(std::move(library));
}

Status Library::readVersion() {
  int count = 0;
  nvrtcResult result = functions->nvrtcVersion(&major, &minor);
  if (result == kSuccess)
    result = functions->nvrtcGetNumSupportedArchs(&count);
  known.resize(size_t(std::max(0, count)));
  if (result == kSuccess)
    result = functions->nvrtcGetSupportedArchs(known.data());
  if (result != kSuccess)
    return Error{"NVRTC ('" + file + "') does not say its version (" +
                 functions->nvrtcGetErrorString(result) +
                 "): install NVRTC 12.4 or newer again"};
  if (major < 12 || (major == 12 && minor < 4))
    return Error{description() +
                 " is too old, expected 12.4 or newer: update NVRTC, or set "
                 "SS_NVRTC to a newer one"};
  return std::nullopt;
}

std::string Library::versionText() const {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string Library::description() const {
  return "NVRTC " + versionText() + " ('" + file + "')";
}

Error Library::unknownArchitecture(const std::string &architecture) const {
  std::string list;
  for (int number : known)
    list += (list.empty() ? "sm_" : ", sm_") + std::to_string(number);
  return Error{description() + " does not compile for '" + architecture +
               "', expected one of " + list +
               ": install an NVRTC that knows this GPU, or set SS_NVRTC to one"};
}

/// What a call that failed says, and whose fault it is.
Error Library::failure(const char *call, int result, const std::string &log,
                       const CompileInput &input, CompileFault &fault) const {
  // Whatever number that has: it is no fault of the source.
  if (log.find("libnvrtc-builtins") != std::string::npos)
    result = kBuiltinOperationFailure;
  switch (result) {
  case kCompilationError:
    fault = CompileFault::Source;
    return Error{"NVRTC " + versionText() + " rejects '" + input.name +
                 "' for " + input.architecture + ": " + input.advice + ": " +
                 log};
  case kBuiltinOperationFailure:
    fault = CompileFault::Installation;
    return Error{description() + " does not find its libnvrtc-builtins (" +
                 (log.empty() ? functions->nvrtcGetErrorString(result) : log) +
                 "), expected it beside that file: install all of the package "
                 "cuda-nvrtc, or set SS_NVRTC to a whole one"};
  case kOutOfMemory:
    fault = CompileFault::Memory;
    return Error{"the host has no memory to compile '" + input.name +
                 "': free some and try again"};
  default:
    fault = CompileFault::Call;
    return Error{std::string(call) + " failed for '" + input.name + "' (" +
                 functions->nvrtcGetErrorString(result) + ", " +
                 description() + "): report it"};
  }
}

Result<std::string> Library::compile(const CompileInput &input,
                                     std::string *log,
                                     CompileFault *fault) const {
  const Functions &f = *functions;
  CompileFault ignored;
  CompileFault &whose = fault ? *fault : ignored;
  std::vector<const char *> texts, names;
  for (const Header &header : input.headers) {
    texts.push_back(header.text.c_str());
    names.push_back(header.name.c_str());
  }
  const size_t digit = input.architecture.find_first_of("0123456789");
  const int number = digit == std::string::npos
                         ? 0
                         : std::atoi(input.architecture.c_str() + digit);
  if (std::find(known.begin(), known.end(), number) == known.end()) {
    whose = CompileFault::Architecture;
    return unknownArchitecture(input.architecture);
  }

  const std::string target = "--gpu-architecture=" + input.architecture;
  std::vector<const char *> options = {target.c_str()};
  for (const std::string &flag : input.flags)
    options.push_back(flag.c_str());
  ProgramOwner owner{nullptr, f.nvrtcDestroyProgram};
  nvrtcResult result = f.nvrtcCreateProgram(
      &owner.program, input.source.c_str(), input.name.c_str(),
      int(texts.size()), texts.data(), names.data());
  if (result != kSuccess)
    return failure("nvrtcCreateProgram", result, "", input, whose);
  result = f.nvrtcCompileProgram(owner.program, int(options.size()),
                                 options.data());
  auto readLog = [&] {
    size_t size = 0;
    std::string text;
    if (f.nvrtcGetProgramLogSize(owner.program, &size) == kSuccess && size) {
      text.resize(size);
      f.nvrtcGetProgramLog(owner.program, text.data());
      text.resize(std::min(text.find('\0'), kLongestLog));
    }
    return text;
  };
  if (result != kSuccess)
    return failure("nvrtcCompileProgram", result, readLog(), input, whose);
  if (log)
    *log = readLog();
  const bool isPtx = input.architecture.rfind("compute_", 0) == 0;
  size_t size = 0;
  result = (isPtx ? f.nvrtcGetPTXSize : f.nvrtcGetCUBINSize)(owner.program,
                                                             &size);
  std::string code(size, '\0');
  if (result == kSuccess)
    result = (isPtx ? f.nvrtcGetPTX : f.nvrtcGetCUBIN)(owner.program,
                                                       code.data());
  if (result != kSuccess || code.empty())
    return failure(isPtx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", result, "", input,
                   whose);
  return code;
}

} // namespace sinkstate::nvrtc
