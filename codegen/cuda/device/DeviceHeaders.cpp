//===- DeviceHeaders.cpp - The device library as text ---------------------===//

#include "codegen/cuda/device/DeviceHeaders.h"

const std::vector<sinkstate::DeviceHeader> &sinkstate::getDeviceHeaderTexts() {
  static const std::vector<DeviceHeader> headers = {
#include "DeviceHeaders.inc"
  };
  return headers;
}
