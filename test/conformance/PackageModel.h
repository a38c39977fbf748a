//===- PackageModel.h - A package that was made elsewhere -------*- C++ -*-===//
#ifndef SINKSTATE_CONFORMANCE_PACKAGEMODEL_H
#define SINKSTATE_CONFORMANCE_PACKAGEMODEL_H

#include "BackEnd.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace sinkstate::conformance {

/// A folder that conformance_packages wrote.
class PackageModel : public Model {
public:
  explicit PackageModel(const std::string &folder)
      : text(read(folder + "/manifest.json")), handle(Package::open(folder)) {}
  const Package &package() const override { return handle; }
  const std::string &manifest() const override { return text; }

private:
  static std::string read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    if (!file)
      throw std::runtime_error("cannot read '" + path +
                               "', expected a folder that conformance_packages "
                               "wrote: run it with the same sources");
    return text;
  }

  std::string text;
  Package handle;
};

} // namespace sinkstate::conformance

#endif
