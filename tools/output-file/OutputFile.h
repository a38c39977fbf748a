//===- OutputFile.h - A file that appears whole or not at all ---*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_OUTPUTFILE_H
#define SINKSTATE_TOOLS_OUTPUTFILE_H

#include "result/Result.h"

#include <string>

namespace sinkstate::tools {

/// Written under a temporary name in the same folder and renamed at the end.
/// Opened before the work, so that a wrong path is found before it; without
/// commit() nothing stays behind, nor where SIGINT, SIGTERM or SIGHUP ends the
/// program.
class OutputFile {
public:
  static Result<OutputFile> open(const std::string &path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  Status commit(const std::string &content);

private:
  OutputFile(std::string path, std::string temporary, int descriptor)
      : path(std::move(path)), temporary(std::move(temporary)),
        descriptor(descriptor) {}
  Status write(const std::string &content);

  std::string path;
  std::string temporary; ///< empty: renamed or moved from
  int descriptor;
};

} // namespace sinkstate::tools

#endif // SINKSTATE_TOOLS_OUTPUTFILE_H
