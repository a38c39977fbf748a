//===- Safetensors.h - Reader of safetensors files --------------*- C++ -*-===//
#ifndef TINY_HYBRID_SAFETENSORS_H
#define TINY_HYBRID_SAFETENSORS_H

#include "Result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tiny_hybrid {

using Shape = std::vector<int64_t>;

/// "[2, 128]"
std::string toString(const Shape &shape);

/// One entry of a file's header. `begin` and `end` are bytes from the start of
/// the data, which follows the header.
struct TensorInfo {
  std::string dtype;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// A file that is mapped into memory and whose header has been checked: the
/// header lies inside the file, every tensor's type is known, its bytes agree
/// with its shape, and the tensors cover the data without gap or overlap.
class SafetensorsFile {
public:
  static Result<SafetensorsFile> open(const std::string &path);

  const std::string &path() const { return filePath; }
  const std::map<std::string, TensorInfo> &tensors() const { return entries; }

  /// A BF16 or F32 tensor of exactly this shape, as float32. Its elements are
  /// finite.
  Result<std::vector<float>> readFloats(const std::string &name,
                                        const Shape &shape) const;

  /// A one-dimensional U8 tensor of any length.
  Result<std::vector<uint8_t>> readBytes(const std::string &name) const;

private:
  class Mapping;
  explicit SafetensorsFile(std::string path) : filePath(std::move(path)) {}

  Status parseHeader();
  Status checkCoverage(uint64_t dataBytes) const;
  Result<const TensorInfo *> find(const std::string &name) const;
  Error tensorError(const std::string &name, const std::string &what) const;
  const unsigned char *bytesOf(const TensorInfo &info) const;
  Result<std::vector<float>> finite(const std::string &name,
                                    std::vector<float> values) const;

  std::string filePath;
  std::shared_ptr<const Mapping> mapping;
  uint64_t dataOffset = 0;
  std::map<std::string, TensorInfo> entries;
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_SAFETENSORS_H
