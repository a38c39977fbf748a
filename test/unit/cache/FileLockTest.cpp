//===- FileLockTest.cpp - An advisory lock that dies with its owner -------===//

#include "cache/FileLock.h"

#include "CacheFixture.h"

#include <cerrno>
#include <csignal>
#include <sys/file.h>
#include <thread>

using namespace cache_test;

namespace {
class FileLockTest : public ::testing::Test {
protected:
  TemporaryFolder folder;
  std::string path = folder.path + "/lock";

  FileLock tryAcquire() { return FileLock::acquire(path, ::flock); }
};

/// Waits as long as it takes: what it waits for is certain to come.
LockWait patient() {
  LockWait wait;
  wait.timeout = std::chrono::hours(1);
  wait.firstNotice = std::chrono::milliseconds(0);
  wait.nextNotice = std::chrono::hours(1);
  return wait;
}

template <int Code> int failing(int, int) {
  errno = Code;
  return -1;
}
} // namespace

TEST_F(FileLockTest, OneOwnerAtATime) {
  FileLock first = tryAcquire();
  ASSERT_TRUE(first.held());
  EXPECT_FALSE(first.waited());
  EXPECT_EQ(tryAcquire().outcome(), LockOutcome::Busy);
  first = FileLock();
  EXPECT_TRUE(tryAcquire().held());
}

TEST_F(FileLockTest, DiesWithItsOwner) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = inChild([&] {
    FileLock lock = tryAcquire();
    (void)!::write(ready[1], lock.held() ? "y" : "n", 1);
    ::pause();
    return 0;
  });
  char held = 'n';
  ASSERT_EQ(::read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_EQ(tryAcquire().outcome(), LockOutcome::Busy);
  ::kill(child, SIGKILL);
  EXPECT_EQ(waitFor(child), -1);
  EXPECT_TRUE(tryAcquire().held());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FileLockTest, WaitingNamesTheOwner) {
  FileLock first = tryAcquire();
  std::string named;
  LockWait wait = patient();
  wait.onWait = [&](const std::string &owner, std::chrono::seconds) {
    named = owner;
    first = FileLock();
  };
  FileLock second = FileLock::acquire(path, ::flock, wait);
  EXPECT_TRUE(second.held());
  EXPECT_TRUE(second.waited());
  EXPECT_TRUE(
      named.starts_with("process " + std::to_string(::getpid()) + " on "))
      << named;
}

TEST_F(FileLockTest, RemovedFileIsNoticed) {
  FileLock first = tryAcquire();
  LockWait wait = patient();
  wait.onWait = [&](const std::string &, std::chrono::seconds) {
    first.removeFile();
    first = FileLock();
  };
  FileLock second = FileLock::acquire(path, ::flock, wait);
  ASSERT_TRUE(second.held());
  EXPECT_TRUE(exists(path));
  EXPECT_EQ(tryAcquire().outcome(), LockOutcome::Busy)
      << "the second owner has the file that is there, not the removed one";
}

TEST_F(FileLockTest, TimesOut) {
  FileLock first = tryAcquire();
  LockWait wait;
  wait.timeout = std::chrono::milliseconds(1);
  EXPECT_EQ(FileLock::acquire(path, ::flock, wait).outcome(),
            LockOutcome::Busy);
}

TEST_F(FileLockTest, UnsupportedIsNotBusy) {
  EXPECT_EQ(FileLock::acquire(path, failing<ENOLCK>).outcome(),
            LockOutcome::Unsupported);
  EXPECT_EQ(FileLock::acquire(path, failing<EOPNOTSUPP>).outcome(),
            LockOutcome::Unsupported);
}

TEST_F(FileLockTest, FailsWhereTheFileCannotBe) {
  FileLock lock = FileLock::acquire(folder.path + "/no/lock", ::flock);
  EXPECT_EQ(lock.outcome(), LockOutcome::Failed);
  EXPECT_NE(lock.problem().find("/no/lock'"), std::string::npos);
}
