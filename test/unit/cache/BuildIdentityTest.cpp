//===- BuildIdentityTest.cpp - Which build of our code is running ---------===//

#include "cache/BuildIdentity.h"

#include "CacheFixture.h"

#include "hash/Sha256.h"

#include <cstdio>

using namespace cache_test;

namespace {
std::string bytesOfHex(const std::string &hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}
} // namespace

TEST(BuildIdentity, OwnIsTheNoteOfTheRunningFile) {
  const std::optional<std::string> identity = ownBuildIdentity();
  ASSERT_TRUE(identity.has_value());
  ASSERT_TRUE(identity->starts_with("build-id:")) << *identity;
  const std::string id = bytesOfHex(identity->substr(9));
  ASSERT_EQ(id.size(), 20u) << *identity;
  // The bytes of the note in the file: sizes 4 and 20, type 3, "GNU".
  const std::string note =
      std::string("\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0", 16) + id;
  Result<std::string> file = readFile("/proc/self/exe", uint64_t(1) << 30);
  ASSERT_TRUE(bool(file));
  EXPECT_NE(file->find(note), std::string::npos);
}

TEST(BuildIdentity, EveryFileHasItsOwn) {
  const std::optional<std::string> library =
      buildIdentityAt(reinterpret_cast<const void *>(&std::puts));
  EXPECT_TRUE(library.has_value());
  EXPECT_NE(library, ownBuildIdentity());
}

TEST(BuildIdentity, NothingForAnAddressInNoFile) {
  const auto memory = std::make_unique<int>();
  EXPECT_EQ(buildIdentityAt(memory.get()), std::nullopt);
}

TEST(BuildIdentity, FileIsHashedWhereThereIsNoNote) {
  TemporaryFolder folder;
  const std::string path = folder.path + "/library.so";
  const std::string bytes = exampleBytes("library", 100000);
  ASSERT_FALSE(writeFile(path, bytes));
  EXPECT_EQ(identityOfFile(path), "sha256:" + sha256Hex(bytes));
  EXPECT_EQ(identityOfFile(folder.path + "/missing"), std::nullopt);
  EXPECT_EQ(identityOfFile(folder.path), std::nullopt);
}
