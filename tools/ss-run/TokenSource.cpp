//===- TokenSource.cpp - The text that is decoded -------------------------===//

#include "TokenSource.h"

#include "Safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace ss_run;
using tiny_hybrid::Error;
using tiny_hybrid::Result;

namespace {

/// What is read of a text at a time.
constexpr uint64_t kPiece = uint64_t(1) << 20;

/// `most`: of what has no size, which may have no end. In pieces, since `most` may be
/// far more than there is.
Result<std::vector<uint8_t>> readTokens(const std::string &path, uint64_t most) {
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
  if (std::filesystem::is_regular_file(path, ignored))
    most = std::filesystem::file_size(path, ignored);
  std::vector<uint8_t> bytes;
  while (stream && bytes.size() < most) {
    const size_t before = bytes.size();
    bytes.resize(before + size_t(std::min(kPiece, most - before)));
    stream.read(reinterpret_cast<char *>(bytes.data() + before),
                std::streamsize(bytes.size() - before));
    bytes.resize(before + size_t(stream.gcount()));
  }
  if (stream.bad())
    return Error{path + ": cannot read, expected a text to decode"};
  return bytes;
}

} // namespace

Result<TokenSource> TokenSource::open(const std::string &path, int batch,
                                      int tokens) {
  const uint64_t window = static_cast<uint64_t>(tokens) + 1;
  auto read = readTokens(path, window * batch);
  if (!read)
    return read.takeError();
  TokenSource source;
  source.bytes = std::move(*read);
  source.batch = batch;
  const uint64_t size = source.bytes.size();
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
