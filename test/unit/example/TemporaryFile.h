//===- TemporaryFile.h - A file for the length of a test --------*- C++ -*-===//
#ifndef TINY_HYBRID_TEST_TEMPORARY_FILE_H
#define TINY_HYBRID_TEST_TEMPORARY_FILE_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

namespace tiny_hybrid_test {

class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &content) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tiny-hybrid-XXXXXX")
            .string();
    int descriptor = ::mkstemp(pattern.data());
    if (descriptor < 0)
      std::abort();
    ::close(descriptor);
    path = pattern;
    std::ofstream(path, std::ios::binary) << content;
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  ~TemporaryFile() { std::filesystem::remove(path); }

  std::string path;
};

inline std::string readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A safetensors file: the header's length, the header, the data.
inline std::string safetensors(const std::string &header,
                               const std::string &data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) +
         header + data;
}

} // namespace tiny_hybrid_test

#endif // TINY_HYBRID_TEST_TEMPORARY_FILE_H
