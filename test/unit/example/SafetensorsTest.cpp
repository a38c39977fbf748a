//===- SafetensorsTest.cpp - Good and damaged safetensors files -----------===//

#include "Safetensors.h"
#include "TemporaryFile.h"

#include <gtest/gtest.h>

using namespace tiny_hybrid;
using namespace tiny_hybrid_test;

namespace {

/// The error of opening a file with these bytes, without its path.
std::string errorOf(const std::string &content) {
  TemporaryFile file(content);
  auto opened = SafetensorsFile::open(file.path);
  if (opened)
    return "opened";
  EXPECT_EQ(opened.error().rfind(file.path + ": ", 0), 0u) << opened.error();
  EXPECT_EQ(opened.error().find('\n'), std::string::npos) << opened.error();
  return opened.error().substr(file.path.size() + 2);
}

std::string errorOf(const std::string &header, const std::string &data) {
  return errorOf(safetensors(header, data));
}

const std::string data12(12, '\0');

TEST(Safetensors, ReadsFloatsAndBytes) {
  // 1.5 and -2 as bfloat16, three bytes, and an unaligned float32 of 1.
  std::string data("\xc0\x3f\x00\xc0"
                   "abc"
                   "\x00\x00\x80\x3f",
                   11);
  TemporaryFile file(
      safetensors(R"({"h":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},)"
                  R"("t":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
                  R"("f":{"dtype":"F32","shape":[],"data_offsets":[7,11]},)"
                  R"("__metadata__":{"a":"b"}}   )",
                  data));
  auto opened = SafetensorsFile::open(file.path);
  ASSERT_TRUE(opened) << opened.error();
  auto h = opened->readFloats("h", {1, 2});
  ASSERT_TRUE(h) << h.error();
  EXPECT_EQ(*h, (std::vector<float>{1.5f, -2.0f}));
  auto t = opened->readBytes("t");
  ASSERT_TRUE(t) << t.error();
  EXPECT_EQ(std::string(t->begin(), t->end()), "abc");
  auto f = opened->readFloats("f", {});
  ASSERT_TRUE(f) << f.error();
  EXPECT_EQ(*f, std::vector<float>{1.0f});
}

TEST(Safetensors, RejectsWhatIsNotAFile) {
  auto missing = SafetensorsFile::open("/no/such/model.safetensors");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(), "/no/such/model.safetensors: cannot open: No such "
                             "file or directory");
  auto folder = SafetensorsFile::open("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error(), "/: found something that is not a regular file, "
                            "expected a safetensors file");
}

TEST(Safetensors, RejectsHeaderLengthsThatLie) {
  EXPECT_EQ(errorOf(""), "found 0 bytes, expected at least the 8 of a "
                         "safetensors header length; the file is truncated");
  EXPECT_EQ(errorOf("abc"), "found 3 bytes, expected at least the 8 of a "
                            "safetensors header length; the file is truncated");
  EXPECT_EQ(errorOf(std::string("\x03\0\0\0\0\0\0\0{}", 10)),
            "found a header length of 3, expected at most 2; the file is "
            "truncated or not safetensors");
  EXPECT_EQ(errorOf(std::string(8, '\xff') + "{}"),
            "found a header length of 18446744073709551615, expected at most "
            "2; the file is truncated or not safetensors");
}

TEST(Safetensors, RejectsHeadersThatAreNotObjects) {
  EXPECT_EQ(errorOf("", ""), "header: found no valid JSON at byte 1, expected "
                             "one object");
  EXPECT_EQ(errorOf(R"({"t":)", ""),
            "header: found no valid JSON at byte 6, expected one object");
  EXPECT_EQ(errorOf("[1]", ""), "header: found [1], expected one JSON object");
  EXPECT_EQ(errorOf("{} x", ""),
            "header: found no valid JSON at byte 4, expected one object");
  EXPECT_EQ(errorOf(R"({"a":{},"a":{}})", ""),
            "header: found the key 'a' twice, expected it once");
  EXPECT_EQ(errorOf(std::string(100000, '['), ""),
            "header: found more than 64 nested levels, expected a flat object");
}

TEST(Safetensors, RejectsMalformedEntries) {
  EXPECT_EQ(errorOf(R"({"t":7})", ""),
            "tensor 't': found 7, expected an object with dtype, shape and "
            "data_offsets");
  EXPECT_EQ(errorOf(R"({"t":{"dtype":"F32","shape":[3]}})", data12),
            "tensor 't': has no data_offsets, expected dtype, shape and "
            "data_offsets");
  EXPECT_EQ(
      errorOf(R"({"t":{"dtype":"F31","shape":[3],"data_offsets":[0,12]}})",
              data12),
      "tensor 't': found dtype 'F31', expected one of the format such as "
      "F32 or BF16");
  EXPECT_EQ(
      errorOf(R"({"t":{"dtype":"F32","shape":[-3],"data_offsets":[0,12]}})",
              data12),
      "tensor 't': found the extent -3, expected an integer of at least "
      "0");
  EXPECT_EQ(
      errorOf(R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[12,0]}})",
              data12),
      "tensor 't': found data_offsets [12,0], expected begin <= end");
  EXPECT_EQ(errorOf(R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0]}})",
                    data12),
            "tensor 't': found data_offsets [0], expected [begin, end]");
  EXPECT_EQ(
      errorOf(
          R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,12],"x":1}})",
          data12),
      "tensor 't': found the key 'x', expected only dtype, shape and "
      "data_offsets");
}

TEST(Safetensors, RejectsShapesThatDisagreeWithBytes) {
  EXPECT_EQ(
      errorOf(R"({"t":{"dtype":"F32","shape":[4],"data_offsets":[0,12]}})",
              data12),
      "tensor 't': found 12 bytes, expected 16 for F32 [4]");
  EXPECT_EQ(errorOf(R"({"t":{"dtype":"F32","shape":[4611686018427387904,4],)"
                    R"("data_offsets":[0,12]}})",
                    data12),
            "tensor 't': found 12 bytes, expected more than fit 64 bits for "
            "F32 [4611686018427387904, 4]");
}

TEST(Safetensors, RejectsTruncatedOverlappingAndUnclaimedData) {
  const std::string two =
      R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)";
  EXPECT_EQ(
      errorOf(R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})",
              data12.substr(1)),
      "tensor 't': ends at byte 12 of the data, expected at most 11; the "
      "file is truncated");
  EXPECT_EQ(errorOf(two + R"("u":{"dtype":"F32","shape":[2],)"
                          R"("data_offsets":[4,12]}})",
                    data12),
            "tensor 'u': begins at byte 4 of the data, expected 8: it overlaps "
            "'t'");
  EXPECT_EQ(errorOf(two + R"("u":{"dtype":"U8","shape":[2],)"
                          R"("data_offsets":[10,12]}})",
                    data12),
            "tensor 'u': begins at byte 10 of the data, expected 8: bytes in "
            "between belong to no tensor");
  EXPECT_EQ(errorOf(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                    data12),
            "found 12 bytes of data, expected 8 as the header says");
}

TEST(Safetensors, RejectsReadsOfAnotherKind) {
  TemporaryFile file(
      safetensors(R"({"i":{"dtype":"I32","shape":[1],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"U8","shape":[2,2],"data_offsets":[4,8]},)"
                  R"("f":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                  data12));
  auto opened = SafetensorsFile::open(file.path);
  ASSERT_TRUE(opened) << opened.error();
  const std::string prefix = file.path + ": tensor ";
  EXPECT_EQ(opened->readFloats("i", {1}).error(),
            prefix + "'i': found dtype I32, expected BF16 or F32");
  EXPECT_EQ(opened->readFloats("f", {1, 1}).error(),
            prefix + "'f': found shape [1], expected [1, 1]");
  EXPECT_EQ(opened->readBytes("f").error(),
            prefix + "'f': found dtype F32, expected U8");
  EXPECT_EQ(opened->readBytes("b").error(),
            prefix + "'b': found shape [2, 2], expected one dimension");
  EXPECT_EQ(opened->readBytes("x").error(),
            prefix + "'x': not found, expected among the 3 tensors of the "
                     "file");
}

} // namespace
