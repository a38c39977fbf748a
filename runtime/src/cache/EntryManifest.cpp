//===- EntryManifest.cpp - manifest.json of a cache entry -----------------===//

#include "cache/EntryManifest.h"

#include "hash/Sha256.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using Json = nlohmann::json;

namespace sinkstate::cache {
namespace {
constexpr const char *kFormat = "sinkstate-kernel";
constexpr int64_t kVersion = 1;

ContentRecord record(const std::string &name, std::string_view content) {
  return {name, content.size(), sha256Hex(content)};
}

Json sizeAndHash(const ContentRecord &record) {
  return {{"size", record.size}, {"sha256", record.sha256}};
}

Json toArray(const std::vector<ContentRecord> &records) {
  Json array = Json::array();
  for (const ContentRecord &record : records) {
    Json object = sizeAndHash(record);
    object["name"] = record.name;
    array.push_back(std::move(object));
  }
  return array;
}

/// Reads fields one by one and keeps the first thing that is wrong.
class FieldReader {
public:
  std::string text(const Json &object, const char *name) {
    const Json *field = find(object, name);
    if (field && field->is_string())
      return *field->get_ptr<const std::string *>();
    expected(name, "a string");
    return "";
  }
  int64_t number(const Json &object, const char *name) {
    const Json *field = find(object, name);
    if (field && field->is_number_integer())
      return field->get<int64_t>();
    expected(name, "an integer");
    return 0;
  }
  const Json &array(const Json &object, const char *name) {
    static const Json empty = Json::array();
    const Json *field = find(object, name);
    if (field && field->is_array())
      return *field;
    expected(name, "an array");
    return empty;
  }
  const Json &object(const Json &parent, const char *name) {
    static const Json empty = Json::object();
    const Json *field = find(parent, name);
    if (field && field->is_object())
      return *field;
    expected(name, "an object");
    return empty;
  }
  ContentRecord sizeAndHash(const Json &object) {
    ContentRecord record;
    const int64_t size = number(object, "size");
    record.size = size < 0 ? 0 : uint64_t(size);
    record.sha256 = text(object, "sha256");
    if (size < 0 || !isKey(record.sha256))
      expected("sha256", "64 hexadecimal digits, and a size that is not "
                         "negative");
    return record;
  }
  std::vector<ContentRecord> contents(const Json &object, const char *name) {
    std::vector<ContentRecord> records;
    for (const Json &element : array(object, name)) {
      records.push_back(sizeAndHash(element));
      records.back().name = text(element, "name");
    }
    return records;
  }
  void expected(const char *field, const char *what) {
    if (problem.empty())
      problem = "'" + std::string(field) + "' is not as expected: " + what;
  }

  std::string problem;

private:
  static const Json *find(const Json &object, const char *name) {
    auto field = object.find(name);
    return field == object.end() ? nullptr : &*field;
  }
};

InputsRecord readInputs(FieldReader &read, const Json &inputs) {
  InputsRecord record;
  record.kernelName = read.text(inputs, "kernel");
  record.architecture = read.text(inputs, "architecture");
  record.nvrtcVersion = read.text(inputs, "nvrtc");
  record.buildId = read.text(inputs, "build");
  record.abiVersion = read.number(inputs, "abi");
  for (const Json &flag : read.array(inputs, "flags")) {
    if (flag.is_string())
      record.flags.push_back(*flag.get_ptr<const std::string *>());
    else
      read.expected("flags", "strings");
  }
  record.source = read.sizeAndHash(read.object(inputs, "source"));
  record.headers = read.contents(inputs, "headers");
  return record;
}

void checkBlobNames(FieldReader &read,
                    const std::vector<ContentRecord> &blobs) {
  for (size_t i = 0; i < blobs.size(); ++i) {
    if (!isBlobName(blobs[i].name))
      read.expected("name", "a plain file name");
    for (size_t j = 0; j < i; ++j)
      if (blobs[j].name == blobs[i].name)
        read.expected("name", "each blob once");
  }
}

} // namespace

bool isBlobName(std::string_view name) {
  if (name.empty() || name.size() > 200 || name.front() == '.')
    return false;
  if (name == kManifestFile || name == kUsedFile)
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c >= 0x20 && c < 0x7f && c != '/' && c != '\\';
  });
}

EntryManifest describeEntry(const std::string &key,
                            const KernelKeyInputs &inputs, const Blobs &blobs,
                            std::time_t created) {
  EntryManifest manifest;
  manifest.key = key;
  manifest.created = created;
  manifest.inputs = {inputs.kernelName,         inputs.architecture,
                     inputs.nvrtcVersion,       inputs.buildId,
                     inputs.abiVersion,         inputs.flags,
                     record("", inputs.source), {}};
  for (const SourceText &header : inputs.headers)
    manifest.inputs.headers.push_back(record(header.name, header.text));
  for (const auto &[name, bytes] : blobs)
    manifest.blobs.push_back(record(name, bytes));
  return manifest;
}

std::string toJson(const EntryManifest &manifest) {
  const InputsRecord &inputs = manifest.inputs;
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"key", manifest.key},
               {"created", int64_t(manifest.created)},
               {"inputs",
                {{"kernel", inputs.kernelName},
                 {"architecture", inputs.architecture},
                 {"nvrtc", inputs.nvrtcVersion},
                 {"build", inputs.buildId},
                 {"abi", inputs.abiVersion},
                 {"flags", Json(inputs.flags)},
                 {"source", sizeAndHash(inputs.source)},
                 {"headers", toArray(inputs.headers)}}},
               {"blobs", toArray(manifest.blobs)}};
  // A name that is not UTF-8 is shown with a replacement character.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<EntryManifest> parseEntryManifest(std::string_view json) {
  const Json document = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!document.is_object())
    return Error{"it is not a JSON object"};
  FieldReader read;
  if (read.text(document, "format") != kFormat)
    read.expected("format", kFormat);
  if (read.number(document, "version") != kVersion)
    read.expected("version", "1");
  EntryManifest manifest;
  manifest.key = read.text(document, "key");
  manifest.created = std::time_t(read.number(document, "created"));
  manifest.inputs = readInputs(read, read.object(document, "inputs"));
  manifest.blobs = read.contents(document, "blobs");
  checkBlobNames(read, manifest.blobs);
  if (!read.problem.empty())
    return Error{read.problem};
  return manifest;
}

} // namespace sinkstate::cache
