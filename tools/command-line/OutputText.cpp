//===- OutputText.cpp - What a tool writes --------------------------------===//

#include "tools/command-line/OutputText.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using llvm::Error;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

namespace sinkstate::tools {

static Error cannotWrite(StringRef path, std::error_code code) {
  return llvm::createStringError(
      code, "cannot write " +
                (path == "-" ? "the standard output" : "'" + path.str() + "'") +
                ": " + code.message() +
                ", expected a place that can be written");
}

/// Writes and closes; the stream's own error would end the program.
static Error finish(llvm::raw_fd_ostream &stream, StringRef text,
                    StringRef path) {
  stream << text;
  stream.flush();
  std::error_code code = stream.error();
  stream.clear_error();
  return code ? cannotWrite(path, code) : Error::success();
}

/// Whether a rename to this path would replace more than a file's content.
static bool isPlace(StringRef path) {
  fs::file_status status;
  return !fs::status(path, status) && fs::exists(status) &&
         !fs::is_regular_file(status);
}

Error writeText(StringRef path, StringRef text) {
  if (path == "-")
    return finish(llvm::outs(), text, path);
  std::error_code code;
  if (isPlace(path)) {
    llvm::raw_fd_ostream stream(path, code);
    return code ? cannotWrite(path, code) : finish(stream, text, path);
  }
  llvm::SmallString<128> temporary;
  fs::createUniquePath(path + ".tmp-%%%%%%%%", temporary, /*MakeAbsolute=*/false);
  {
    llvm::raw_fd_ostream stream(temporary, code, fs::CD_CreateNew);
    if (code)
      return cannotWrite(path, code);
    llvm::sys::RemoveFileOnSignal(temporary);
    if (Error error = finish(stream, text, path)) {
      fs::remove(temporary);
      llvm::sys::DontRemoveFileOnSignal(temporary);
      return error;
    }
  }
  code = fs::rename(temporary, path);
  if (code)
    fs::remove(temporary);
  llvm::sys::DontRemoveFileOnSignal(temporary);
  if (code)
    return cannotWrite(path, code);
  return Error::success();
}

} // namespace sinkstate::tools
