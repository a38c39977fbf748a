//===- PackageTest.cpp - Packages in folders ------------------------------===//

#include "sinkstate/sinkstate.hpp"

#include "hash/Sha256.h"
#include "package/CpuIsa.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <functional>

using namespace sinkstate;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string bytesOf(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// A package of one dense layer; its code for level N writes N to y.
class PackageFolder : public testing::Test {
protected:
  PackageFolder() {
    folder = fs::temp_directory_path() /
             ("sinkstate-package-" + std::to_string(getpid()) + "-" +
              testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder / "cpu");
    manifest = Json::parse(R"({
      "format": "sinkstate-package", "version": 1, "abi": 4, "model": "folder",
      "layers": [{"name": "l", "index": 3, "type": "mamba2", "heads": 1,
        "key_heads": 1, "dv": 4, "dk": 4, "form": "dense", "storage": "f32",
        "channel_decay": false, "has_beta": false,
        "kernels": {"decode": "test_decode"}}],
      "kernels": [{"name": "test_decode", "role": "decode", "args": [
        {"name": "y", "type": "f32*"}, {"name": "y_stride", "type": "i64"}]}],
      "cpu": []})");
  }
  ~PackageFolder() override { fs::remove_all(folder); }

  void addCode(int level) {
    const std::string isa = "x86-64-v" + std::to_string(level);
    const std::string file = "cpu/" + isa + ".so";
    fs::copy_file(std::string(SS_TEST_PACKAGE_FOLDER) + "/level" +
                      std::to_string(level) + ".so",
                  folder / file, fs::copy_options::overwrite_existing);
    manifest["cpu"].push_back({{"isa", isa},
                               {"file", file},
                               {"sha256", sha256Hex(bytesOf(folder / file))}});
  }
  void write() {
    std::ofstream(folder / "manifest.json") << manifest.dump(1);
  }

  /// What the loaded code writes to y.
  float loadAndDecode() {
    write();
    Package package = Package::open(folder.string());
    ss_engine_options options = engineOptions();
    auto engine = std::make_unique<Engine>(package, options);
    { Package closed = std::move(package); } // the engine keeps the code
    const int32_t slot = engine->allocateSlot();
    const float in[4] = {};
    float y[4] = {};
    ss_decode_args args = decodeArgs();
    args.batch = 1;
    args.slots = &slot;
    args.q = args.k = args.v = args.gate = {in, 0};
    args.a_log = args.dt_bias = in;
    args.y = y;
    engine->decodeLayer(0, args);
    return y[3];
  }

  void expectError(ss_result result, const std::string &line) {
    write();
    ss_package *package = nullptr;
    EXPECT_EQ(ss_package_open(folder.c_str(), &package), result);
    EXPECT_EQ(package, nullptr);
    std::string found = ss_last_error();
    for (size_t at; (at = found.find(folder.string())) != std::string::npos;)
      found.replace(at, folder.string().size(), "FOLDER");
    EXPECT_EQ(found, line);
  }

  fs::path folder;
  Json manifest;
};

TEST_F(PackageFolder, TheBestLevelOfThisProcessorIsLoaded) {
  const int host = std::max(2, runtime::hostCpuIsaLevel());
  addCode(2);
  EXPECT_EQ(loadAndDecode(), 2.0f);
  addCode(4);
  EXPECT_EQ(loadAndDecode(), host >= 4 ? 4.0f : 2.0f);
  addCode(3);
  EXPECT_EQ(loadAndDecode(), float(host));
}

TEST_F(PackageFolder, AChangedFileIsNotLoaded) {
  addCode(2);
  std::ofstream(folder / "cpu/x86-64-v2.so", std::ios::app) << "x";
  const std::string found =
      sha256Hex(bytesOf(folder / "cpu/x86-64-v2.so"));
  const std::string expected = manifest["cpu"][0]["sha256"];
  expectError(SS_MALFORMED_PACKAGE,
              "'FOLDER/cpu/x86-64-v2.so' has sha256 " + found + ", expected " +
                  expected +
                  " (manifest.json): the file was changed or cut, copy the "
                  "package again");
}

TEST_F(PackageFolder, AMissingFileIsNamed) {
  addCode(2);
  fs::remove(folder / "cpu/x86-64-v2.so");
  expectError(SS_NOT_FOUND,
              "'FOLDER/cpu/x86-64-v2.so' cannot be opened, expected a readable "
              "file of the package: build the package again");
}

TEST_F(PackageFolder, AFileThatIsNoLibraryIsNotLoaded) {
  addCode(2);
  std::ofstream(folder / "cpu/x86-64-v2.so") << "not a library";
  manifest["cpu"][0]["sha256"] =
      sha256Hex(bytesOf(folder / "cpu/x86-64-v2.so"));
  write();
  ss_package *package = nullptr;
  EXPECT_EQ(ss_package_open(folder.c_str(), &package), SS_MALFORMED_PACKAGE);
  EXPECT_NE(std::string(ss_last_error()).find("cannot be loaded ("),
            std::string::npos);
}

TEST_F(PackageFolder, AMissingSymbolIsNamed) {
  addCode(2);
  manifest["kernels"][0]["name"] = "other_decode";
  manifest["layers"][0]["kernels"]["decode"] = "other_decode";
  expectError(SS_NOT_FOUND,
              "'FOLDER/cpu/x86-64-v2.so' has no symbol 'other_decode', "
              "expected every kernel of manifest.json: build the package "
              "again");
}

TEST_F(PackageFolder, CodeIsNeeded) {
  expectError(SS_NOT_FOUND, "the package of model 'folder' has no CPU code, "
                            "expected an entry in 'cpu': compile it for this "
                            "processor");
}

TEST_F(PackageFolder, CodeOfAHigherLevelIsRefused) {
  const int host = runtime::hostCpuIsaLevel();
  if (host >= 4)
    GTEST_SKIP() << "this processor runs every level";
  addCode(4);
  expectError(SS_VERSION_MISMATCH,
              "the package of model 'folder' has CPU code for x86-64-v4, but "
              "this processor runs x86-64-v" +
                  std::to_string(host) + ": compile it for a lower level");
}

TEST_F(PackageFolder, EntriesOfTheCodeListAreChecked) {
  addCode(2);
  const Json good = manifest;
  auto expect = [&](const char *field, const char *value, const char *line) {
    manifest = good;
    manifest["cpu"][0][field] = value;
    expectError(SS_MALFORMED_PACKAGE, std::string("manifest.json: cpu entry "
                                                  "0: ") +
                                          line + ": build the package again");
  };
  expect("isa", "sparc",
         "isa 'sparc', expected 'x86-64-v2', 'x86-64-v3' or 'x86-64-v4'");
  expect("file", "../evil.so",
         "file '../evil.so', expected a path inside the package");
  expect("file", "/evil.so",
         "file '/evil.so', expected a path inside the package");
  expect("sha256", "12ab",
         "sha256 '12ab', expected 64 lower-case hexadecimal digits");
}

} // namespace
