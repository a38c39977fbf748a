//===- CudaUnderTest.cpp - An engine on the fake GPU ----------------------===//

#include "CudaUnderTest.h"

#include "HostSchedule.h"

#include "hash/Sha256.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace sinkstate::test {
namespace {

/// Before any engine: the libraries are opened once per process.
const bool environmentIsSet = [] {
  setenv("SS_CUDA_DRIVER", SS_FAKE_CUDA, 1);
  setenv("SS_NVRTC", SS_FAKE_NVRTC, 1);
  setenv("SS_CACHE", "off", 1);
  return true;
}();

size_t sizeOf(const std::string &type) {
  return type == "i32" || type == "f32" ? 4 : 8;
}

} // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "ss-cuda-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw std::runtime_error("no temporary folder");
  folder = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

FakePackage::FakePackage(std::vector<LayerSpec> layers)
    : kernels(std::move(layers)) {
  nlohmann::json json = nlohmann::json::parse(kernels.manifest());
  json["cpu"] = nlohmann::json::array();
  json["cuda"] = nlohmann::json::array();
  const std::string header = "#pragma once\n";
  writeFile("cuda/include/ss/base.cuh", header);
  json["cuda_headers"] = {{{"name", "ss/base.cuh"},
                           {"file", "cuda/include/ss/base.cuh"},
                           {"sha256", sha256Hex(header)}}};
  for (const nlohmann::json &kernel : json["kernels"]) {
    const std::string name = kernel["name"];
    const std::string source = "// " + name + "\n";
    writeFile("cuda/" + name + ".cu", source);
    json["cuda"].push_back({{"kernel", name},
                            {"file", "cuda/" + name + ".cu"},
                            {"sha256", sha256Hex(source)}});
  }
  manifest = json.dump(2);
  write();
  registerKernels();
}

void FakePackage::write() const { writeFile("manifest.json", manifest); }

void FakePackage::writeFile(const std::string &name,
                            const std::string &content) const {
  const std::filesystem::path path =
      std::filesystem::path(temporary.path()) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

void FakePackage::runEntry(void *context, void *const *parameters, unsigned) {
  const Entry &entry = *static_cast<const Entry *>(context);
  const auto programs =
      *static_cast<const int64_t *>(parameters[entry.arguments]);
  entry.run(parameters, nullptr, 0, programs);
}

void FakePackage::registerKernels() {
  const nlohmann::json json = nlohmann::json::parse(manifest);
  for (const nlohmann::json &kernel : json["kernels"]) {
    const std::string name = kernel["name"];
    std::vector<size_t> sizes;
    for (const nlohmann::json &argument : kernel["args"])
      sizes.push_back(sizeOf(argument["type"]));
    Entry &entry = entries[name];
    entry = {KernelSet::lookup(&kernels, name.c_str()), sizes.size()};
    sizes.push_back(sizeof(int64_t));
    fake_add_kernel(name.c_str(), sizes.data(), sizes.size(), runEntry, &entry);
  }
}

OnFakeGpu::OnFakeGpu() {
  (void)environmentIsSet;
  fake_reset();
  addHostKernels();
}

ss_engine_options OnFakeGpu::cudaOptions(int32_t slots) {
  ss_engine_options options = engineOptions();
  options.slots = slots;
  options.device = SS_DEVICE_CUDA;
  return options;
}

std::vector<LayerSpec> fourLayers(double eps) {
  std::vector<LayerSpec> layers =
      numbered({gdnLayer(4, 2, 24, 16), mamba2Layer(2, 1, 16, 24),
                kdaLayer(2, 2, 16, 16), gdnLayer(2, 2, 8, 8)});
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].active = 2;
    layers[i].buffer = i == 1 ? 3 : 4;
    layers[i].phase = int32_t(i) % layers[i].buffer;
    layers[i].policyValue = eps;
  }
  layers[3].denseForm = true;
  return layers;
}

void HeldCalls::decodeUntilReached(CudaUnderTest &cuda,
                                   DrivenRequest &request) const {
  constexpr int kFirst = 12, kMilliseconds = 10;
  for (int step = 0; step < kFirst; ++step)
    cuda.driver.step({&request});
  waitUntil(std::string("a thread in ") + name, [&] {
    if (fake_is_waited_in(name, kMilliseconds))
      return true;
    cuda.driver.step({&request});
    return false;
  });
}

} // namespace sinkstate::test
