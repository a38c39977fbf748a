//===- Nvrtc.h - CUDA C++ to machine code, without a toolkit ----*- C++ -*-===//
//
// NVIDIA's run-time compiler, opened with dlopen: nothing of CUDA is needed to
// build, and a machine without it gets a message instead of a loader error.
// Compiling needs no GPU. All functions may be called from several threads.
//
//   auto library = nvrtc::Library::get();
//   Result<std::string> cubin = (*library)->compile(
//       {"scale.cu", source, headers, "sm_90", nvrtc::kernelFlags()});
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_NVRTC_NVRTC_H
#define SINKSTATE_NVRTC_NVRTC_H

#include "result/Result.h"

#include <memory>
#include <string>
#include <vector>

namespace sinkstate::nvrtc {

/// A header that sources include by `name` ("ss/base.cuh").
struct Header {
  std::string name, text;
};

struct CompileInput {
  /// How messages call the source.
  std::string name;
  std::string source;
  std::vector<Header> headers;
  /// "sm_90" for machine code, "compute_90" for PTX.
  std::string architecture;
  std::vector<std::string> flags;
  /// What to do where the source is rejected.
  std::string advice = "the printed kernel is wrong, report it";
};

/// Whose fault it is that something was not compiled.
enum class CompileFault {
  Architecture, ///< this NVRTC does not know it
  Source,       ///< the source is rejected
  Installation, ///< a part of NVRTC is missing
  Memory,       ///< of the host
  Call          ///< anything else, which should not happen
};

/// The flags every kernel is compiled with, apart from the architecture.
std::vector<std::string> kernelFlags();

class Library {
public:
  /// The library of this process, opened at the first call. `path`: the file to
  /// open; empty: SS_NVRTC, and where that is not given libnvrtc where the loader
  /// and the usual toolkit folders have it. A later call with another path gets the library that is open already.
  static Result<std::shared_ptr<const Library>>
  get(const std::string &path = "");

  /// Opens a library on its own; `get` is this with a memory.
  static Result<std::shared_ptr<const Library>> open(const std::string &path);
  ~Library();

  /// "13.0"
  std::string versionText() const;
  /// The architectures it compiles for, as numbers: 90 for sm_90.
  const std::vector<int> &architectures() const { return known; }

  /// The file it was loaded from.
  const std::string &path() const { return file; }

  /// Machine code (or PTX) of one source, or the compiler's log in one error.
  /// `log` receives what the compiler says of source that it takes: registers
  /// and spills with the flag --ptxas-options=-v. `fault` is set with an error.
  Result<std::string> compile(const CompileInput &input,
                              std::string *log = nullptr,
                              CompileFault *fault = nullptr) const;

private:
  struct Functions;
  Library() = default;
  Status readVersion();
  Error unknownArchitecture(const std::string &architecture) const;
  Error failure(const char *call, int result, const std::string &log,
                const CompileInput &input, CompileFault &fault) const;
  /// "NVRTC 13.0 ('/usr/lib/libnvrtc.so.13')"
  std::string description() const;

  std::string file;
  void *handle = nullptr;
  std::unique_ptr<Functions> functions;
  int major = 0, minor = 0;
  std::vector<int> known;
};

} // namespace sinkstate::nvrtc

#endif
