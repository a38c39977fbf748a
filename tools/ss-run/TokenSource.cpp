//===- TokenSource.cpp - The text that is decoded -------------------------===//

#include "TokenSource.h"

#include "Safetensors.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace ss_run;
using tiny_hybrid::Error;
using tiny_hybrid::Result;

namespace {

Result<std::vector<uint8_t>> readTokens(const std::string &path) {
  if (path.ends_with(".safetensors")) {
    auto file = tiny_hybrid::SafetensorsFile::open(path);
    if (!file)
      return file.takeError();
    return file->readBytes("tokens");
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{path + ": found a folder, expected a text to decode"};
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return Error{path + ": cannot open: " + std::strerror(errno) +
                 ", expected a text to decode"};
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad())
    return Error{path + ": cannot read, expected a text to decode"};
  return bytes;
}

} // namespace

Result<TokenSource> TokenSource::open(const std::string &path, int batch,
                                      int tokens) {
  auto read = readTokens(path);
  if (!read)
    return read.takeError();
  TokenSource source;
  source.bytes = std::move(*read);
  source.batch = batch;
  const uint64_t size = source.bytes.size();
  const uint64_t window = static_cast<uint64_t>(tokens) + 1;
  const uint64_t lastStart = size / batch * (batch - 1);
  if (size - lastStart < window)
    return Error{path + ": found " + std::to_string(size) +
                 " bytes, expected at least " + std::to_string(window * batch) +
                 ": " + std::to_string(batch) +
                 (batch == 1 ? " window of " : " windows of ") +
                 std::to_string(tokens) + " tokens and the byte after them"};
  return source;
}

std::vector<uint8_t> TokenSource::at(int position) const {
  const size_t stride = bytes.size() / batch;
  std::vector<uint8_t> tokens(batch);
  for (int request = 0; request < batch; ++request)
    tokens[request] = bytes[request * stride + position];
  return tokens;
}
