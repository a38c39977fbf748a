//===- Safetensors.cpp - Reader of safetensors files ----------------------===//

#include "Safetensors.h"

#include "Json.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tiny_hybrid;

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian and are read in place");

namespace {

constexpr uint64_t lengthBytes = 8;
/// The format's own limit on headers.
constexpr uint64_t maxHeaderBytes = 100'000'000;

struct DTypeSize {
  const char *name;
  uint64_t bytes;
};
constexpr DTypeSize knownTypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8},
};

/// 0 for a type that the format does not know.
uint64_t bytesPerElement(const std::string &dtype) {
  for (const DTypeSize &known : knownTypes)
    if (dtype == known.name)
      return known.bytes;
  return 0;
}

/// Bytes of a tensor, or nothing where the product does not fit 64 bits.
std::optional<uint64_t> byteCount(const Shape &shape, uint64_t elementBytes) {
  uint64_t count = elementBytes;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count))
      return std::nullopt;
  return count;
}

/// Reads one header entry; the message of an error does not name the tensor.
Result<TensorInfo> parseEntry(const nlohmann::json &entry) {
  if (!entry.is_object())
    return Error{"found " + describe(entry) +
                 ", expected an object with dtype, shape and data_offsets"};
  for (const auto &[key, value] : entry.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return Error{"found the key '" + key +
                   "', expected only dtype, shape and data_offsets"};
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key))
      return Error{std::string("has no ") + key +
                   ", expected dtype, shape and data_offsets"};

  TensorInfo info;
  if (!entry["dtype"].is_string())
    return Error{"found dtype " + describe(entry["dtype"]) +
                 ", expected a string"};
  info.dtype = entry["dtype"].get<std::string>();
  if (!bytesPerElement(info.dtype))
    return Error{"found dtype '" + info.dtype +
                 "', expected one of the format such as F32 or BF16"};
  if (!entry["shape"].is_array())
    return Error{"found shape " + describe(entry["shape"]) +
                 ", expected a list of extents"};
  for (const auto &extent : entry["shape"]) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX)
      return Error{"found the extent " + describe(extent) +
                   ", expected an integer of at least 0"};
    info.shape.push_back(extent.get<int64_t>());
  }
  const auto &offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return Error{"found data_offsets " + describe(offsets) +
                 ", expected [begin, end]"};
  info.begin = offsets[0].get<uint64_t>();
  info.end = offsets[1].get<uint64_t>();
  if (info.begin > info.end)
    return Error{"found data_offsets " + describe(offsets) +
                 ", expected begin <= end"};
  std::optional<uint64_t> bytes =
      byteCount(info.shape, bytesPerElement(info.dtype));
  if (!bytes || *bytes != info.end - info.begin)
    return Error{"found " + std::to_string(info.end - info.begin) +
                 " bytes, expected " +
                 (bytes ? std::to_string(*bytes) : "more than fit 64 bits") +
                 " for " + info.dtype + " " + toString(info.shape)};
  return info;
}

} // namespace

std::string tiny_hybrid::toString(const Shape &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

//===----------------------------------------------------------------------===//
// The mapping
//===----------------------------------------------------------------------===//

/// The bytes of a file, read-only, for as long as somebody holds them.
class SafetensorsFile::Mapping {
public:
  static Result<std::shared_ptr<const Mapping>> open(const std::string &path) {
    auto failed = [&](const char *what) {
      return Error{path + ": cannot " + what + ": " + std::strerror(errno)};
    };
    int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      return failed("open");
    struct stat info;
    if (::fstat(descriptor, &info) != 0) {
      Error error = failed("read its size");
      ::close(descriptor);
      return error;
    }
    if (!S_ISREG(info.st_mode)) {
      ::close(descriptor);
      return Error{path + ": found something that is not a regular file, "
                          "expected a safetensors file"};
    }
    auto mapping = std::make_shared<Mapping>();
    mapping->bytes = static_cast<uint64_t>(info.st_size);
    if (mapping->bytes > 0) {
      void *address = ::mmap(nullptr, mapping->bytes, PROT_READ, MAP_PRIVATE,
                             descriptor, 0);
      if (address == MAP_FAILED) {
        Error error = failed("map");
        ::close(descriptor);
        mapping->bytes = 0;
        return error;
      }
      mapping->start = static_cast<const unsigned char *>(address);
    }
    ::close(descriptor);
    return std::shared_ptr<const Mapping>(std::move(mapping));
  }

  Mapping() = default;
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  ~Mapping() {
    if (start)
      ::munmap(const_cast<unsigned char *>(start), bytes);
  }

  const unsigned char *start = nullptr;
  uint64_t bytes = 0;
};

//===----------------------------------------------------------------------===//
// SafetensorsFile
//===----------------------------------------------------------------------===//

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  auto mapping = Mapping::open(path);
  if (!mapping)
    return mapping.takeError();
  SafetensorsFile file(path);
  file.mapping = std::move(*mapping);
  if (Status status = file.parseHeader())
    return std::move(*status);
  return file;
}

Status SafetensorsFile::parseHeader() {
  if (mapping->bytes < lengthBytes)
    return Error{filePath + ": found " + std::to_string(mapping->bytes) +
                 " bytes, expected at least the 8 of a safetensors header "
                 "length; the file is truncated"};
  uint64_t headerBytes;
  std::memcpy(&headerBytes, mapping->start, lengthBytes);
  uint64_t rest = mapping->bytes - lengthBytes;
  if (headerBytes > std::min(rest, maxHeaderBytes))
    return Error{filePath + ": found a header length of " +
                 std::to_string(headerBytes) + ", expected at most " +
                 std::to_string(std::min(rest, maxHeaderBytes)) +
                 "; the file is truncated or not safetensors"};
  const char *begin =
      reinterpret_cast<const char *>(mapping->start) + lengthBytes;
  auto header = parseJsonObject(std::string_view(begin, headerBytes));
  if (!header)
    return Error{filePath + ": header: " + header.error()};
  dataOffset = lengthBytes + headerBytes;

  for (const auto &[name, entry] : header->items()) {
    if (name == "__metadata__") {
      if (!entry.is_object())
        return Error{filePath + ": __metadata__: found " + describe(entry) +
                     ", expected an object of strings"};
      continue;
    }
    Result<TensorInfo> info = parseEntry(entry);
    if (!info)
      return tensorError(name, info.error());
    if (info->end > rest - headerBytes)
      return tensorError(name, "ends at byte " + std::to_string(info->end) +
                                   " of the data, expected at most " +
                                   std::to_string(rest - headerBytes) +
                                   "; the file is truncated");
    entries.emplace(name, std::move(*info));
  }
  return checkCoverage(rest - headerBytes);
}

Status SafetensorsFile::checkCoverage(uint64_t dataBytes) const {
  std::vector<std::pair<const std::string *, const TensorInfo *>> order;
  for (const auto &[name, info] : entries)
    order.emplace_back(&name, &info);
  std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second->begin, a.second->end) <
           std::pair(b.second->begin, b.second->end);
  });
  uint64_t covered = 0;
  const std::string *previous = nullptr;
  for (const auto &[name, info] : order) {
    if (info->begin < covered)
      return tensorError(
          *name, "begins at byte " + std::to_string(info->begin) +
                     " of the data, expected " + std::to_string(covered) +
                     ": it overlaps '" + *previous + "'");
    if (info->begin > covered)
      return tensorError(
          *name, "begins at byte " + std::to_string(info->begin) +
                     " of the data, expected " + std::to_string(covered) +
                     ": bytes in between belong to no tensor");
    covered = info->end;
    previous = name;
  }
  if (covered != dataBytes)
    return Error{filePath + ": found " + std::to_string(dataBytes) +
                 " bytes of data, expected " + std::to_string(covered) +
                 " as the header says"};
  return std::nullopt;
}

Error SafetensorsFile::tensorError(const std::string &name,
                                   const std::string &what) const {
  return Error{filePath + ": tensor '" + name + "': " + what};
}

const unsigned char *SafetensorsFile::bytesOf(const TensorInfo &info) const {
  return mapping->start + dataOffset + info.begin;
}

Result<const TensorInfo *>
SafetensorsFile::find(const std::string &name) const {
  auto position = entries.find(name);
  if (position == entries.end())
    return tensorError(name, "not found, expected among the " +
                                 std::to_string(entries.size()) +
                                 " tensors of the file");
  return &position->second;
}

Result<std::vector<float>>
SafetensorsFile::readFloats(const std::string &name, const Shape &shape) const {
  auto found = find(name);
  if (!found)
    return found.takeError();
  const TensorInfo &info = **found;
  if (info.dtype != "BF16" && info.dtype != "F32")
    return tensorError(name,
                       "found dtype " + info.dtype + ", expected BF16 or F32");
  if (info.shape != shape)
    return tensorError(name, "found shape " + toString(info.shape) +
                                 ", expected " + toString(shape));
  const unsigned char *source = bytesOf(info);
  if (info.dtype == "F32") {
    std::vector<float> values((info.end - info.begin) / sizeof(float));
    // The format does not align tensors.
    if (!values.empty())
      std::memcpy(values.data(), source, info.end - info.begin);
    return finite(name, std::move(values));
  }
  std::vector<float> values((info.end - info.begin) / sizeof(uint16_t));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, source + i * sizeof(half), sizeof(half));
    values[i] = std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
  }
  return finite(name, std::move(values));
}

/// One parameter that is not finite makes every output so: found here, it can be
/// named.
Result<std::vector<float>>
SafetensorsFile::finite(const std::string &name,
                        std::vector<float> values) const {
  const auto wrong = std::find_if(values.begin(), values.end(), [](float x) {
    return !std::isfinite(x);
  });
  if (wrong == values.end())
    return values;
  return tensorError(name, std::string("found ") +
                               (std::isnan(*wrong) ? "NaN" : "infinity") +
                               " at element " +
                               std::to_string(wrong - values.begin()) +
                               ", expected finite numbers");
}

Result<std::vector<uint8_t>>
SafetensorsFile::readBytes(const std::string &name) const {
  auto found = find(name);
  if (!found)
    return found.takeError();
  const TensorInfo &info = **found;
  if (info.dtype != "U8")
    return tensorError(name, "found dtype " + info.dtype + ", expected U8");
  if (info.shape.size() != 1)
    return tensorError(name, "found shape " + toString(info.shape) +
                                 ", expected one dimension");
  const unsigned char *source = bytesOf(info);
  return std::vector<uint8_t>(source, source + (info.end - info.begin));
}
