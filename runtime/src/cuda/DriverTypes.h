//===- DriverTypes.h - What of cuda.h the runtime needs ---------*- C++ -*-===//
//
// Types and constants of the CUDA driver API, as its ABI fixes them. Written
// out so that no CUDA header is needed to build; DriverSymbols.def pins the
// version of every function that uses them.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_DRIVERTYPES_H
#define SINKSTATE_CUDA_DRIVERTYPES_H

#include <cstddef>
#include <cstdint>

namespace sinkstate::runtime::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

enum : CUresult {
  kSuccess = 0,
  kErrorOutOfMemory = 2,
  kErrorDeinitialized = 4,
  kErrorStubLibrary = 34,
  kErrorDeviceUnavailable = 46,
  kErrorNoDevice = 100,
  kErrorInvalidImage = 200,
  kErrorNoBinaryForGpu = 209,
  kErrorEccUncorrectable = 214,
  kErrorNvlinkUncorrectable = 220,
  kErrorUnsupportedPtxVersion = 222,
  kErrorContained = 226,
  kErrorNotReady = 600,
  kErrorIllegalAddress = 700,
  kErrorLaunchTimeout = 702,
  kErrorContextIsDestroyed = 709,
  kErrorAssert = 710,
  kErrorHardwareStack = 714,
  kErrorLaunchFailed = 719,
  kErrorTensorMemoryLeak = 721,
  kErrorSystemDriverMismatch = 803,
  kErrorCaptureUnsupported = 900,
  kErrorCaptureUnjoined = 904,
  kErrorCaptureIsolation = 905,
  kErrorCapturedEvent = 907
};

enum CUdevice_attribute : int {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
  kVirtualMemoryManagement = 102
};

using CUmemGenericAllocationHandle = unsigned long long;

/// Where memory is: a kind and which one.
struct CUmemLocation {
  int type;
  int id;
};

struct CUmemAllocationProp {
  int type;
  int requestedHandleTypes;
  CUmemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};
static_assert(sizeof(CUmemAllocationProp) == 32);

struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};
static_assert(sizeof(CUmemAccessDesc) == 12);

constexpr int kMemAllocationPinned = 1;
constexpr int kMemLocationDevice = 1;
constexpr int kMemAccessReadWrite = 3;
constexpr int kMemGranularityMinimum = 0;

enum CUfunction_attribute : int {
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicSharedBytes = 8,
  kFunctionSharedCarveout = 9
};

enum CUjit_option : int {
  kJitInfoLogBuffer = 3,
  kJitInfoLogBufferBytes = 4,
  kJitErrorLogBuffer = 5,
  kJitErrorLogBufferBytes = 6
};

/// One attribute of a launch.
struct CUlaunchAttribute {
  int id;
  int unused;
  union {
    int flag;
    char all[64];
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72);

struct CUlaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned attributeCount;
};
static_assert(sizeof(CUlaunchConfig) == 56);

/// The kernel may begin before what is queued ahead of it has ended.
constexpr int kLaunchBesideEnd = 6;

constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDisableTiming = 2;
constexpr int kCaptureModeThreadLocal = 1;
constexpr int kCaptureModeRelaxed = 2;
constexpr int kCaptureStatusNone = 0;
constexpr int kCaptureStatusActive = 1;
constexpr unsigned kHostAllocPortable = 1;
constexpr unsigned kHostAllocDeviceMap = 2;

/// What cuGetProcAddress says about a symbol.
using CUdriverProcAddressQueryResult = int;
constexpr CUdriverProcAddressQueryResult kSymbolVersionNotSufficient = 2;

} // namespace sinkstate::runtime::cuda

#endif
