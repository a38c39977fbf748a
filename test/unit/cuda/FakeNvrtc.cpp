//===- FakeNvrtc.cpp - A run-time compiler that compiles nothing ----------===//
//
// Its machine code is "FAKE", the name of the source and the architecture; a
// source that says "#error" is rejected.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cstring>
#include <string>

struct _nvrtcProgram {
  std::string name, source, architecture, log;
  std::string code() const { return "FAKE " + name + " " + architecture; }
};
using Program = _nvrtcProgram *;

namespace {
std::atomic<int> compilations = 0;
}

extern "C" {
/// For tests: sources compiled since the process began.
int fake_nvrtc_compilations() { return compilations; }

int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
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
