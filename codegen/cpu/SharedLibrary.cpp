//===- SharedLibrary.cpp - objects linked for a package -------------------===//
#include "codegen/cpu/CpuCodegen.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace sinkstate::cpu;
using llvm::StringRef;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// The linker that belongs to this LLVM, else one in PATH.
static llvm::Expected<std::string> findLinker() {
  StringRef tools = SS_LLVM_TOOLS_DIR;
  for (StringRef name : {"ld.lld", "ld.lld-22"}) {
    if (auto found = llvm::sys::findProgramByName(name, {tools}))
      return *found;
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  }
  return makeError("found no ld.lld in '" + tools +
                   "' or PATH, expected the linker of LLVM: install lld");
}

static llvm::Error writeObject(const llvm::MemoryBuffer &object,
                               llvm::SmallVectorImpl<char> &path) {
  int descriptor;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile(
          "sinkstate", "o", descriptor, path))
    return makeError("cannot create a temporary object: " + code.message());
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << object.getBuffer();
  stream.close();
  if (!stream.has_error())
    return llvm::Error::success();
  std::string reason = stream.error().message();
  stream.clear_error();
  return makeError("cannot write a temporary object: " + reason);
}

llvm::Error sinkstate::cpu::emitSharedLibrary(mlir::ModuleOp module,
                                              const CpuTarget &target,
                                              StringRef path) {
  llvm::Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  auto object = compileObject(module, target);
  if (!object)
    return object.takeError();
  llvm::SmallString<128> objectPath;
  if (llvm::Error error = writeObject(**object, objectPath))
    return error;
  llvm::FileRemover remover(objectPath);
  std::string output = path.str();
  std::string message;
  // Nothing of the time, place or machine goes into the file.
  int code = llvm::sys::ExecuteAndWait(
      *linker,
      {*linker, "-shared", "-z", "defs", "-z", "noexecstack", "--build-id=none",
       "--strip-all", "-o", output, objectPath},
      std::nullopt, {}, /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (code == 0)
    return llvm::Error::success();
  return makeError("'" + *linker + "' failed to link '" + output +
                   "' with code " + llvm::Twine(code) +
                   (message.empty() ? "" : ": " + message));
}
