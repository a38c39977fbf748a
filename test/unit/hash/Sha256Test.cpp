//===- Sha256Test.cpp - Known vectors of FIPS 180-4 -----------------------===//

#include "hash/Sha256.h"

#include <gtest/gtest.h>

using sinkstate::Sha256;
using sinkstate::sha256Hex;

TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256Hex(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256Hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(
      sha256Hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, AnySplitGivesTheSameDigest) {
  // 55, 56 and 64 bytes are where padding needs one block more.
  for (size_t size : {54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 200}) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i)
      bytes += char(i * 7);
    const std::string whole = sha256Hex(bytes);
    for (size_t cut = 0; cut <= size; ++cut) {
      Sha256 hash;
      hash.update(std::string_view(bytes).substr(0, cut));
      hash.update(std::string_view(bytes).substr(cut));
      EXPECT_EQ(hash.finish(), whole) << size << " bytes cut at " << cut;
    }
  }
}

TEST(Sha256, ZeroBytesCount) {
  EXPECT_EQ(sha256Hex(std::string_view("\0", 1)),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}
