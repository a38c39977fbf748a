#include "hash/Crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace sinkstate;

// RFC 3720 appendix B.4, and the check value of the Castagnoli polynomial.
TEST(Crc32c, HasTheStandardsValues) {
  EXPECT_EQ(crc32c("", 0), 0u);
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte)
    ascending += byte;
  EXPECT_EQ(crc32c(ascending.data(), 32), 0x46dd794eu);
}

TEST(Crc32c, IsTheSameWithoutTheInstruction) {
  std::vector<unsigned char> bytes;
  for (size_t size = 0; size < 300; ++size) {
    EXPECT_EQ(crc32cPortable(bytes.data(), size), crc32c(bytes.data(), size));
    bytes.push_back(static_cast<unsigned char>(size * 151 + size / 7));
  }
}
