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

/// A temporary file that goes away with this object.
static llvm::Expected<std::unique_ptr<llvm::FileRemover>>
createTemporary(StringRef suffix, llvm::SmallVectorImpl<char> &path) {
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("sinkstate", suffix, path))
    return makeError("cannot create a temporary file: " + code.message());
  return std::make_unique<llvm::FileRemover>(path);
}

static llvm::Error writeObject(const llvm::MemoryBuffer &object,
                               StringRef path) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    stream << object.getBuffer();
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  if (!code)
    return llvm::Error::success();
  return makeError("cannot write '" + path + "': " + code.message());
}

/// Runs the linker; its own messages become part of the error.
static llvm::Error link(StringRef linker, StringRef object, StringRef output) {
  llvm::SmallString<128> log;
  auto remover = createTemporary("log", log);
  if (!remover)
    return remover.takeError();
  std::string message;
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(log),
                                          StringRef(log)};
  // Nothing of the time, place or machine goes into the file.
  int code = llvm::sys::ExecuteAndWait(
      linker,
      {linker, "-shared", "-z", "defs", "-z", "noexecstack", "--build-id=none",
       "--strip-all", "-o", output, object},
      std::nullopt, redirects, /*SecondsToWait=*/0, /*MemoryLimit=*/0,
      &message);
  if (code == 0)
    return llvm::Error::success();
  if (auto text = llvm::MemoryBuffer::getFile(log))
    message += (*text)->getBuffer().split('\n').first.str();
  return makeError("'" + linker + "' failed to link '" + output +
                   "': " + message);
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
  auto remover = createTemporary("o", objectPath);
  if (!remover)
    return remover.takeError();
  if (llvm::Error error = writeObject(**object, objectPath))
    return error;
  return link(*linker, objectPath, path);
}
