//===- InputText.cpp - What a tool reads ----------------------------------===//

#include "tools/command-line/InputText.h"

#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"

namespace sinkstate::tools {

static constexpr size_t kMostBytes = size_t(64) << 20;

/// One byte beyond the limit tells that there is more.
static llvm::ErrorOr<std::string> readSome(llvm::sys::fs::file_t file) {
  constexpr size_t kPiece = size_t(1) << 16;
  std::string text;
  while (text.size() <= kMostBytes) {
    const size_t before = text.size();
    text.resize(before + kPiece);
    llvm::Expected<size_t> read = llvm::sys::fs::readNativeFile(
        file, llvm::MutableArrayRef<char>(text.data() + before, kPiece));
    if (!read)
      return llvm::errorToErrorCode(read.takeError());
    text.resize(before + *read);
    if (*read == 0)
      return text;
  }
  return llvm::make_error_code(llvm::errc::file_too_large);
}

llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> readText(llvm::StringRef path) {
  const bool isStandard = path == "-";
  llvm::sys::fs::file_t file = llvm::sys::fs::getStdinHandle();
  if (!isStandard) {
    llvm::Expected<llvm::sys::fs::file_t> opened =
        llvm::sys::fs::openNativeFileForRead(path);
    if (!opened)
      return llvm::errorToErrorCode(opened.takeError());
    file = *opened;
  }
  llvm::ErrorOr<std::string> text = readSome(file);
  if (!isStandard)
    (void)llvm::sys::fs::closeFile(file);
  if (!text)
    return text.getError();
  return llvm::MemoryBuffer::getMemBufferCopy(*text, isStandard ? "<stdin>" : path);
}

} // namespace sinkstate::tools
