//===- OutputFile.h - A file that appears whole or not at all ---*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_OUTPUTFILE_H
#define SINKSTATE_TOOLS_SS_RUN_OUTPUTFILE_H

#include "Result.h"

#include <string>

namespace ss_run {

/// Written under a temporary name in the same folder and renamed at the end.
/// Opened before the work, so that a wrong path is found before it; without
/// commit() nothing stays behind.
class OutputFile {
public:
  static tiny_hybrid::Result<OutputFile> open(const std::string &path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  tiny_hybrid::Status commit(const std::string &content);

private:
  OutputFile(std::string path, std::string temporary, int descriptor)
      : path(std::move(path)), temporary(std::move(temporary)),
        descriptor(descriptor) {}
  tiny_hybrid::Status write(const std::string &content);

  std::string path;
  std::string temporary; ///< empty: renamed or moved from
  int descriptor;
};

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_OUTPUTFILE_H
