//===- OutputFileTest.cpp - Files that appear whole or not at all ---------===//

#include "OutputFile.h"
#include "TemporaryFile.h"

#include <gtest/gtest.h>

using namespace ss_run;
using tiny_hybrid_test::readFile;

namespace {

class OutputFileTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "ss-run-XXXXXX").string();
    ASSERT_TRUE(::mkdtemp(pattern.data()));
    folder = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  long files() const {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }

  std::string folder;
};

TEST_F(OutputFileTest, AppearsAtCommit) {
  {
    auto file = OutputFile::open(folder + "/a.json");
    ASSERT_TRUE(file) << file.error();
    EXPECT_FALSE(std::filesystem::exists(folder + "/a.json"));
    ASSERT_FALSE(file->commit("{}\n"));
    EXPECT_EQ(readFile(folder + "/a.json"), "{}\n");
  }
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, LeavesTheOldFileWithoutCommit) {
  std::ofstream(folder + "/a.json") << "old";
  {
    auto file = OutputFile::open(folder + "/a.json");
    ASSERT_TRUE(file) << file.error();
  }
  EXPECT_EQ(readFile(folder + "/a.json"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, RejectsPathsThatCannotBeWritten) {
  EXPECT_EQ(OutputFile::open(folder + "/no/a.json").error(),
            folder + "/no/a.json: cannot create: No such file or directory, "
                     "expected a path that can be written");
  EXPECT_EQ(OutputFile::open(folder).error(),
            folder + ": found a folder, expected the name of a file");
}

} // namespace
