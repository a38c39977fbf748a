//===- OutputFileTest.cpp - Files that appear whole or not at all ---------===//

#include "OutputFile.h"
#include "TemporaryFile.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using sinkstate::tools::OutputFile;
using tiny_hybrid_test::readFile;

namespace {

class OutputFileTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "ss-output-XXXXXX").string();
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

// The program ends as it would have, and its temporary files are gone.
TEST_F(OutputFileTest, LeavesNothingWhereASignalEndsTheProgram) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          std::signal(signal, SIG_DFL);
          auto done = OutputFile::open(folder + "/done.json");
          auto moved = OutputFile::open(folder + "/a.json");
          auto other = OutputFile::open(folder + "/b.svg");
          if (!done || !moved || !other || done->commit("{}\n"))
            std::exit(1);
          OutputFile kept = std::move(*moved);
          std::raise(signal);
        },
        testing::KilledBySignal(signal), "");
    EXPECT_EQ(files(), 1) << signal;
  }
  EXPECT_EQ(readFile(folder + "/done.json"), "{}\n");
}

// Under nohup an interrupt that is ignored stays so.
TEST_F(OutputFileTest, IgnoresWhatTheProgramIgnores) {
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);
        auto file = OutputFile::open(folder + "/a.json");
        std::raise(SIGHUP);
        std::exit(!file || file->commit("{}\n"));
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(readFile(folder + "/a.json"), "{}\n");
}

TEST_F(OutputFileTest, RejectsPathsThatCannotBeWritten) {
  EXPECT_EQ(OutputFile::open(folder + "/no/a.json").error(),
            folder + "/no/a.json: cannot create: No such file or directory, "
                     "expected a path that can be written");
  EXPECT_EQ(OutputFile::open(folder).error(),
            folder + ": found a folder, expected the name of a file");
}

// A pipe, as /dev/null or a terminal, stays what it is.
TEST_F(OutputFileTest, WritesToWhatIsNoFile) {
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto file = OutputFile::open(pipe);
  ASSERT_TRUE(file) << file.error();
  ASSERT_FALSE(file->commit("{}\n"));
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 3);
  EXPECT_STREQ(text, "{}\n");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, SaysThatADiskIsFull) {
  if (!std::filesystem::is_character_file("/dev/full"))
    GTEST_SKIP() << "no /dev/full on this machine";
  auto file = OutputFile::open("/dev/full");
  ASSERT_TRUE(file) << file.error();
  auto status = file->commit("{}\n");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->message,
            "/dev/full: cannot write: No space left on device, expected a path "
            "that can be written");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

} // namespace
