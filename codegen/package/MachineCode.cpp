//===- MachineCode.cpp - Printed kernels for known GPUs -------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "codegen/package/MachineCode.h"

#include "codegen/cuda/device/DeviceHeaders.h"

#include "nvrtc/Nvrtc.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Parallel.h"

namespace sinkstate {

static bool isArchitecture(llvm::StringRef name) {
  if (!name.consume_front("sm_"))
    return false;
  if (name.ends_with("a") || name.ends_with("f"))
    name = name.drop_back();
  return name.size() >= 2 && llvm::all_of(name, llvm::isDigit);
}

llvm::Error checkArchitectures(llvm::ArrayRef<std::string> architectures) {
  for (size_t i = 0; i < architectures.size(); ++i) {
    if (!isArchitecture(architectures[i]))
      return llvm::createStringError("architecture '" + architectures[i] +
                                     "', expected one such as sm_90a or sm_80");
    if (llvm::is_contained(architectures.take_front(i), architectures[i]))
      return llvm::createStringError("architecture '" + architectures[i] +
                                     "' is named twice, expected it once");
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<std::string>>
compileToMachineCode(llvm::ArrayRef<MachineCodeInput> inputs) {
  auto library = nvrtc::Library::get();
  if (!library)
    return llvm::createStringError("no machine code can be made: " +
                                   library.error());
  std::vector<nvrtc::Header> headers;
  for (const DeviceHeader &header : getDeviceHeaderTexts())
    headers.push_back({header.name, header.text});
  std::vector<std::string> code(inputs.size()), errors(inputs.size());
  llvm::parallelFor(0, inputs.size(), [&](size_t i) {
    const MachineCodeInput &input = inputs[i];
    Result<std::string> made =
        (*library)->compile({input.kernel + ".cu", input.source.str(), headers,
                             input.architecture, nvrtc::kernelFlags()});
    if (made)
      code[i] = std::move(*made);
    else
      errors[i] = made.error();
  });
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!errors[i].empty())
      return llvm::createStringError("kernel '" + inputs[i].kernel + "' for " +
                                     inputs[i].architecture + ": " + errors[i]);
  return code;
}

} // namespace sinkstate
