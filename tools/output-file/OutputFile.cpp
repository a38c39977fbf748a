//===- OutputFile.cpp - A file that appears whole or not at all -----------===//

#include "OutputFile.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace sinkstate;
using namespace sinkstate::tools;

/// The temporary files there are, for a signal that ends the program: a handler
/// may unlink, and take no lock. More of them than a tool has outputs.
static std::atomic<char *> pending[16];

static void removePending(int signal) {
  for (std::atomic<char *> &place : pending)
    if (const char *name = place.exchange(nullptr))
      ::unlink(name);
  ::raise(signal); // SA_RESETHAND: what it does by itself
}

/// Only where the signal would end the program.
static void handleSignals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now = {}, ours = {};
    ours.sa_handler = removePending;
    ours.sa_flags = SA_RESETHAND;
    if (::sigaction(signal, nullptr, &now) == 0 &&
        !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
      ::sigaction(signal, &ours, nullptr);
  }
}

static void remember(const std::string &temporary) {
  handleSignals();
  char *name = ::strdup(temporary.c_str());
  for (std::atomic<char *> &place : pending)
    if (char *none = nullptr; place.compare_exchange_strong(none, name))
      return;
  std::free(name);
}

static void forget(const std::string &temporary) {
  for (std::atomic<char *> &place : pending)
    if (char *name = place.load(); name && temporary == name &&
                                   place.compare_exchange_strong(name, nullptr))
      return std::free(name);
}

static Error failed(const std::string &path, const char *what) {
  return Error{path + ": cannot " + what + ": " + std::strerror(errno) +
               ", expected a path that can be written"};
}

Result<OutputFile> OutputFile::open(const std::string &path) {
  std::error_code ignored;
  const auto found = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(found))
    return Error{path + ": found a folder, expected the name of a file"};
  if (std::filesystem::exists(found) &&
      !std::filesystem::is_regular_file(found)) {
    // A device or a pipe is written to: a rename would replace it.
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
      return failed(path, "open");
    return OutputFile(path, "", descriptor);
  }
  std::string temporary = path + ".XXXXXX";
  int descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0)
    return failed(path, "create");
  remember(temporary);
  // mkstemp's files are private; a result has the mode of any other new file.
  mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor, 0666 & ~mask);
  return OutputFile(path, std::move(temporary), descriptor);
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)),
      temporary(std::exchange(other.temporary, {})),
      descriptor(std::exchange(other.descriptor, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (temporary.empty())
    return;
  ::unlink(temporary.c_str());
  forget(temporary);
}

Status OutputFile::write(const std::string &content) {
  for (size_t done = 0; done < content.size();) {
    ssize_t written =
        ::write(descriptor, content.data() + done, content.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return failed(path, "write");
    done += static_cast<size_t>(written);
  }
  if (::close(std::exchange(descriptor, -1)) != 0)
    return failed(path, "write");
  return std::nullopt;
}

Status OutputFile::commit(const std::string &content) {
  if (Status status = write(content))
    return status;
  if (temporary.empty())
    return std::nullopt;
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    return failed(path, "rename a temporary file to it");
  forget(temporary);
  temporary.clear();
  return std::nullopt;
}
