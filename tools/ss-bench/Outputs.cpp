//===- Outputs.cpp - Files for what was measured --------------------------===//

#include "Outputs.h"

#include <algorithm>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;
using sinkstate::Status;
using sinkstate::tools::OutputFile;

Result<Outputs> Outputs::open(const std::vector<std::string> &paths) {
  Outputs outputs;
  outputs.files.reserve(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty())
      continue;
    if (std::find(paths.begin(), paths.begin() + i, paths[i]) !=
        paths.begin() + i)
      return Error{paths[i] +
                   ": found for two outputs, expected a file for each"};
    Result<OutputFile> file = OutputFile::open(paths[i]);
    if (!file)
      return file.takeError();
    outputs.files.emplace_back(std::move(*file), i);
  }
  return outputs;
}

Status Outputs::write(const std::vector<std::string> &texts) {
  for (auto &[file, number] : files)
    if (Status failed = file.commit(texts[number]))
      return failed;
  return std::nullopt;
}
