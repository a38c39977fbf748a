//===- ManifestCode.cpp - The code files that a manifest names ------------===//

#include "package/ManifestCode.h"

#include <algorithm>

namespace sinkstate::runtime {
namespace {

/// Above what any GPU gives a block.
constexpr int64_t kMaxSharedBytes = 1 << 20;

/// A path that stays inside the package.
bool isInside(const std::string &path) {
  if (path.empty() || path.front() == '/')
    return false;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    if (path.compare(begin, end - begin, "..") == 0)
      return false;
    begin = end + 1;
  }
  return true;
}

CudaCodeManifest parseKernelCode(const Json &json, size_t position,
                                 const Manifest &manifest) {
  ManifestObject object(json, text("cuda entry ", position));
  CudaCodeManifest code;
  const std::string name = object.nonEmptyString("kernel");
  for (size_t i = 0; i < manifest.kernels.size(); ++i)
    if (manifest.kernels[i].name == name)
      code.kernel = KernelIndex(i);
  if (code.kernel == kNoKernel)
    malformed(object.place(), ": kernel '", name, "' is not in 'kernels'");
  for (const CudaCodeManifest &other : manifest.cuda)
    if (other.kernel == code.kernel)
      malformed(object.place(), ": kernel '", name, "' has code already");
  code.source = parseFile(object);
  if (object.has("dynamic_shared"))
    code.dynamicShared = object.integer("dynamic_shared", 0, kMaxSharedBytes);
  if (object.has("cubins"))
    for (const Json &entry : object.array("cubins")) {
      ManifestObject cubin(entry, object.place() + ", cubin");
      code.cubins.push_back({cubin.nonEmptyString("arch"), parseFile(cubin)});
    }
  return code;
}

} // namespace

PackageFile parseFile(const ManifestObject &entry) {
  PackageFile file{entry.string("file"), entry.string("sha256")};
  if (!isInside(file.path))
    malformed(entry.place(), ": file '", file.path,
              "', expected a path inside the package");
  bool isHash = file.sha256.size() == 64 &&
                file.sha256.find_first_not_of("0123456789abcdef") ==
                    std::string::npos;
  if (!isHash)
    malformed(entry.place(), ": sha256 '", file.sha256,
              "', expected 64 lower-case hexadecimal digits");
  return file;
}

void parseCudaCode(const Json &top, Manifest &manifest) {
  ManifestObject object(top, "the top level");
  if (object.has("cuda"))
    for (const Json &entry : object.array("cuda"))
      manifest.cuda.push_back(
          parseKernelCode(entry, manifest.cuda.size(), manifest));
  if (object.has("cuda_headers"))
    for (const Json &entry : object.array("cuda_headers")) {
      ManifestObject header(
          entry, text("cuda header ", manifest.cudaHeaders.size()));
      manifest.cudaHeaders.push_back(
          {header.nonEmptyString("name"), parseFile(header)});
    }
}

} // namespace sinkstate::runtime
