//===- CompileCheck.cpp - Compile printed kernels to look at them ---------===//

#include "codegen/cuda/CompileCheck.h"
#include "codegen/cuda/device/DeviceHeaders.h"

#include "nvrtc/Nvrtc.h"

#include <cstdlib>
#include <sstream>

using namespace sinkstate;
using namespace sinkstate::cuda;

/// The number that stands before `unit` in a line of ptxas, or 0.
static int64_t getNumberBefore(const std::string &line, const std::string &unit) {
  size_t at = line.find(unit);
  if (at == std::string::npos)
    return 0;
  size_t start = at;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9')
    --start;
  return std::atoll(line.substr(start, at - start).c_str());
}

/// ptxas -v prints for each kernel its name, then a line on stack and spills, then one
/// on registers and shared memory.
static std::vector<KernelResources> parseLog(const std::string &log) {
  static const std::string kEntry = "Compiling entry function '";
  std::vector<KernelResources> kernels;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (size_t at = line.find(kEntry); at != std::string::npos) {
      std::string rest = line.substr(at + kEntry.size());
      kernels.push_back({rest.substr(0, rest.find('\''))});
    }
    if (kernels.empty())
      continue;
    KernelResources &kernel = kernels.back();
    kernel.stackBytes += getNumberBefore(line, " bytes stack frame");
    kernel.spillBytes += getNumberBefore(line, " bytes spill stores") +
                         getNumberBefore(line, " bytes spill loads");
    kernel.registers += getNumberBefore(line, " registers");
    kernel.sharedBytes += getNumberBefore(line, " bytes smem");
  }
  return kernels;
}

Result<std::vector<KernelResources>> cuda::compileForCheck(const std::string &name,
                                                           const std::string &source,
                                                           const std::string &architecture) {
  auto library = nvrtc::Library::get();
  if (!library)
    return Error{library.error()};
  nvrtc::CompileInput input;
  input.name = name;
  input.source = source;
  for (const DeviceHeader &header : getDeviceHeaderTexts())
    input.headers.push_back({header.name, header.text});
  input.architecture = architecture;
  input.flags = nvrtc::kernelFlags();
  input.flags.push_back("--ptxas-options=-v");
  std::string log;
  Result<std::string> code = (*library)->compile(input, &log);
  if (!code)
    return Error{code.error()};
  return parseLog(log);
}
