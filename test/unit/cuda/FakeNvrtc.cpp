//===- FakeNvrtc.cpp - A run-time compiler that compiles nothing ----------===//
//
// Its machine code is "FAKE", the name of the source and the architecture; a
// source that says "#error" is rejected.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>

struct _nvrtcProgram {
  std::string name, source, architecture, log;
  std::string code() const { return "FAKE " + name + " " + architecture; }
};
using Program = _nvrtcProgram *;

namespace {
std::atomic<int> compilations = 0;
std::mutex mutex; // of everything below
std::condition_variable met;
int versionMajor = 13, versionMinor = 0, failure = 0, wanted = 0, inside = 0;
std::string failureLog, architecture;

constexpr int kNobodyCame = 11; // an internal error
/// Waits for as many compilations as are wanted to be here at the same time.
int meet() {
  std::unique_lock lock(mutex);
  if (wanted == 0)
    return 0;
  ++inside;
  met.notify_all();
  const bool all = met.wait_for(lock, std::chrono::seconds(10), [] {
    return wanted == 0 || inside >= wanted;
  });
  return all ? 0 : kNobodyCame;
}
} // namespace

extern "C" {
/// For tests: sources compiled since the process began.
int fake_nvrtc_compilations() { return compilations; }
const char *fake_nvrtc_architecture() { return architecture.c_str(); }
void fake_nvrtc_fail(int result, const char *log) {
  std::lock_guard lock(mutex);
  failure = result;
  failureLog = log;
}
void fake_nvrtc_set_version(int major, int minor) {
  versionMajor = major;
  versionMinor = minor;
}
void fake_nvrtc_meet(int count) {
  std::lock_guard lock(mutex);
  wanted = count;
  inside = 0;
}

int nvrtcVersion(int *major, int *minor) {
  *major = versionMajor;
  *minor = versionMinor;
  return 0;
}
int nvrtcGetNumSupportedArchs(int *count) {
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int *architectures) {
  architectures[0] = 90;
  return 0;
}
const char *nvrtcGetErrorString(int) { return "said by the fake NVRTC"; }
int nvrtcCreateProgram(Program *program, const char *source, const char *name,
                       int, const char *const *, const char *const *) {
  *program = new _nvrtcProgram{name, source, "", ""};
  return 0;
}
int nvrtcDestroyProgram(Program *program) {
  delete *program;
  return 0;
}
int nvrtcCompileProgram(Program program, int count, const char *const *flags) {
  ++compilations;
  for (int i = 0; i < count; ++i)
    if (std::string flag = flags[i]; flag.rfind("--gpu-architecture=", 0) == 0)
      program->architecture = flag.substr(19);
  if (const int nobody = meet())
    return nobody;
  std::lock_guard lock(mutex);
  architecture = program->architecture;
  if (failure) {
    program->log = failureLog;
    return failure;
  }
  if (program->source.find("#error") == std::string::npos)
    return 0;
  program->log = program->name + "(1): error: #error directive";
  return 6;
}
int nvrtcGetProgramLogSize(Program program, size_t *size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program program, char *log) {
  std::strcpy(log, program->log.c_str());
  return 0;
}
int nvrtcGetCUBINSize(Program program, size_t *size) {
  *size = program->code().size();
  return 0;
}
int nvrtcGetCUBIN(Program program, char *cubin) {
  std::memcpy(cubin, program->code().data(), program->code().size());
  return 0;
}
int nvrtcGetPTXSize(Program program, size_t *size) {
  return nvrtcGetCUBINSize(program, size);
}
int nvrtcGetPTX(Program program, char *ptx) {
  return nvrtcGetCUBIN(program, ptx);
}
}
