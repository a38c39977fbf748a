//===- DeviceHeaders.h - The device library as text -------------*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_CUDA_DEVICE_DEVICEHEADERS_H
#define SINKSTATE_CODEGEN_CUDA_DEVICE_DEVICEHEADERS_H

#include <string>
#include <vector>

namespace sinkstate {

/// A header that printed kernels include by `name` ("ss/tile.cuh").
struct DeviceHeader {
  std::string name;
  std::string text;
};

/// Every header of the device library, sorted by name.
const std::vector<DeviceHeader> &getDeviceHeaderTexts();

} // namespace sinkstate

#endif // SINKSTATE_CODEGEN_CUDA_DEVICE_DEVICEHEADERS_H
