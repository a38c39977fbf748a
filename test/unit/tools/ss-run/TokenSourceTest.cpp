//===- TokenSourceTest.cpp - Windows of texts -----------------------------===//

#include "TokenSource.h"
#include "TemporaryFile.h"

#include <gtest/gtest.h>

using namespace ss_run;
using namespace tiny_hybrid_test;

namespace {

using Bytes = std::vector<uint8_t>;

TEST(TokenSource, GivesEveryRequestItsWindow) {
  TemporaryFile file("abcdefghij");
  auto source = TokenSource::open(file.path, 3, 2);
  ASSERT_TRUE(source) << source.error();
  EXPECT_EQ(source->at(0), (Bytes{'a', 'd', 'g'}));
  EXPECT_EQ(source->at(2), (Bytes{'c', 'f', 'i'}));
}

TEST(TokenSource, ReadsTheTensorOfSafetensorsFiles) {
  auto source =
      TokenSource::open(TINY_HYBRID_MODEL "/golden.safetensors", 1, 1024);
  ASSERT_TRUE(source) << source.error();
  EXPECT_EQ(source->at(0).size(), 1u);
  auto none = TokenSource::open(TINY_HYBRID_MODEL "/model.safetensors", 1, 1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(),
            TINY_HYBRID_MODEL "/model.safetensors: tensor 'tokens': not found, "
                              "expected among the 133 tensors of the file");
}

TEST(TokenSource, SaysHowManyBytesItNeeds) {
  TemporaryFile file("abcdefghij");
  EXPECT_TRUE(TokenSource::open(file.path, 1, 9));
  EXPECT_EQ(TokenSource::open(file.path, 1, 10).error(),
            file.path + ": found 10 bytes, expected at least 11: 1 window of "
                        "10 tokens and the byte after them");
  EXPECT_EQ(TokenSource::open(file.path, 4, 4).error(),
            file.path + ": found 10 bytes, expected at least 20: 4 windows of "
                        "4 tokens and the byte after them");
  EXPECT_EQ(TokenSource::open(file.path, 60000, 1 << 30).error(),
            file.path + ": found 10 bytes, expected at least 64424509500000: "
                        "60000 windows of 1073741824 tokens and the byte after "
                        "them");
  TemporaryFile empty("");
  EXPECT_FALSE(TokenSource::open(empty.path, 1, 1));
}

TEST(TokenSource, ReadsNoMoreThanIsAskedForOfWhatHasNoEnd) {
  auto source = TokenSource::open("/dev/zero", 3, 7);
  ASSERT_TRUE(source) << source.error();
  for (int position = 0; position <= 7; ++position)
    EXPECT_EQ(source->at(position), (Bytes{0, 0, 0}));
  EXPECT_EQ(TokenSource::open("/dev/null", 3, 7).error(),
            "/dev/null: found 0 bytes, expected at least 24: 3 windows of 7 tokens "
            "and the byte after them");
}

TEST(TokenSource, RejectsWhatIsNotAFile) {
  EXPECT_EQ(TokenSource::open("/no/such/text", 1, 1).error(),
            "/no/such/text: cannot open: No such file or directory, expected a "
            "text to decode");
  EXPECT_EQ(TokenSource::open("/", 1, 1).error(),
            "/: found a folder, expected a text to decode");
}

} // namespace
