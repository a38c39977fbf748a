//===- DeviceRoutines.cpp - Routines of the device library on the GPU -----===//
//
// One warp a matrix (four for a Gram matrix), in global memory where the routine
// allows it: what a compaction or an init kernel does with one in shared memory.
//
//===----------------------------------------------------------------------===//

#include "SvdOracle.h"

#include "capi/Failure.h"
#include "codegen/cuda/device/DeviceHeaders.h"
#include "cuda/KernelCompiler.h"
#include "cuda/Memory.h"
#include "cuda/Module.h"

#include <map>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;

namespace sinkstate::test {
namespace {

/// After a line that says what kSize is.
constexpr const char *kSource = R"cuda(
#include "ss/core_svd.cuh"
#include "ss/orthogonalize.cuh"

__device__ double (&matrix(double *at))[kSize][kSize] {
  return *reinterpret_cast<double(*)[kSize][kSize]>(at);
}

extern "C" __global__ void core_svd(double *c, double *xt, double *sigma,
                                    double *yt, int *status) {
  const long long i = blockIdx.x;
  const long long at = i * kSize * kSize;
  const int bits =
      ss::core_svd(kSize, matrix(c + at), matrix(xt + at),
                   *reinterpret_cast<double(*)[kSize]>(sigma + i * kSize),
                   matrix(yt + at));
  if (threadIdx.x == 0)
    status[i] = bits;
}

// Its matrices are in shared memory, which it addresses as such.
extern "C" __global__ void orthogonalize(double *gram, double *t,
                                         int *status) {
  __shared__ double own_gram[kSize][kSize], own_t[kSize][kSize];
  const long long i = blockIdx.x;
  const long long at = i * kSize * kSize;
  for (int j = threadIdx.x; j < kSize * kSize; j += 32) {
    (&own_gram[0][0])[j] = gram[at + j];
    (&own_t[0][0])[j] = t[at + j];
  }
  __syncwarp();
  const int bits = ss::orthogonalize(kSize, own_gram, own_t);
  __syncwarp();
  for (int j = threadIdx.x; j < kSize * kSize; j += 32) {
    gram[at + j] = (&own_gram[0][0])[j];
    t[at + j] = (&own_t[0][0])[j];
  }
  if (threadIdx.x == 0)
    status[i] = bits;
}
)cuda";

/// After a line that says what kSize is.
constexpr const char *kGramSource = R"cuda(
#include "ss/add_gram.cuh"
#include "ss/gram_svd.cuh"

constexpr int kWarps = 4;

extern "C" __global__ void gram_svd(const float *matrices, float *vectors,
                                    double *sigma, double *room, double share,
                                    int *status) {
  const long long i = blockIdx.x;
  auto &rows = *reinterpret_cast<const float(*)[kSize][kSize]>(
      matrices + i * kSize * kSize);
  auto &to = *reinterpret_cast<float(*)[kSize + 1][kSize]>(
      vectors + i * (kSize + 1) * kSize);
  ss::add_gram<kWarps>(kSize, kSize, 0, 1, rows, to);
  const int bits = ss::gram_svd<kWarps>(
      kSize, to, *reinterpret_cast<double(*)[kSize]>(sigma + i * kSize),
      *reinterpret_cast<double(*)[kRoom]>(room + i * kRoom), share);
  if (threadIdx.x == 0)
    status[i] = bits;
}
)cuda";

/// After a line that says what Element is: one register a thread.
constexpr const char *kWidenSource = R"cuda(
#include "ss/half.cuh"

extern "C" __global__ void widen(const unsigned *registers, float *wide) {
  constexpr int count = 4 / sizeof(Element);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  Element from[count];
  float to[count];
  memcpy(from, registers + i, 4);
  ss::widen(to, from);
  for (int e = 0; e < count; ++e)
    wide[i * count + e] = to[e];
}
)cuda";

class DeviceRoutines final : public RoutineRunner {
public:
  explicit DeviceRoutines(std::shared_ptr<const Context> gpu)
      : context(std::move(gpu)), compiler(*context) {}

  std::vector<int32_t> coreSvd(int m, std::vector<double> c,
                               std::vector<double> &xt,
                               std::vector<double> &sigma,
                               std::vector<double> &yt) override {
    xt.assign(c.size(), 0);
    yt.assign(c.size(), 0);
    sigma.assign(c.size() / size_t(m), 0);
    return run(m, "core_svd", {&c, &xt, &sigma, &yt});
  }

  std::vector<int32_t> orthogonalize(int m, std::vector<double> &gram,
                                     std::vector<double> &t) override {
    t.assign(gram.size(), 0);
    return run(m, "orthogonalize", {&gram, &t});
  }

  std::vector<int32_t> gramSvd(int m, double share,
                               const std::vector<float> &matrices,
                               std::vector<float> &vectors,
                               std::vector<double> &sigma) override {
    constexpr unsigned threads = 4 * 32;
    const size_t step = size_t(m) * size_t(m), count = matrices.size() / step,
                 each = step + size_t(m);
    sigma.assign(count * size_t(m), 0);
    std::vector<float> memory(count * each);
    std::vector<int32_t> status(count, -1);
    CurrentContext current(*context);
    const Module module = compiled(
        text("gram_", m),
        text("constexpr int kSize = ", m, ", kRoom = ", m + SS_GRAM_ROOM, ";",
             kGramSource));
    OwnStream stream(context);
    DeviceMemory from(context, matrices.size() * sizeof(float)),
        to(context, memory.size() * sizeof(float)),
        values(context, sigma.size() * sizeof(double)),
        room(context, count * size_t(m + SS_GRAM_ROOM) * sizeof(double)),
        bits(context, count * sizeof(int32_t));
    stream.copyIn(from.address(), matrices.data(),
                  matrices.size() * sizeof(float));
    CUdeviceptr addresses[] = {from.address(), to.address(), values.address(),
                               room.address(), bits.address()};
    void *parameters[] = {&addresses[0], &addresses[1], &addresses[2],
                          &addresses[3], &share,        &addresses[4]};
    SS_CUDA(context->driver(),
            cuLaunchKernel(module.function("gram_svd"), unsigned(count), 1, 1,
                           threads, 1, 1, 0, stream.get(), parameters, nullptr));
    stream.copyOut(memory.data(), addresses[1], memory.size() * sizeof(float));
    stream.copyOut(sigma.data(), addresses[2], sigma.size() * sizeof(double));
    stream.copyOut(status.data(), addresses[4], count * sizeof(int32_t));
    for (size_t i = 0; i < count; ++i)
      vectors.insert(vectors.end(), memory.begin() + long(i * each),
                     memory.begin() + long(i * each + step));
    return status;
  }

  std::vector<float> widen(const std::string &type,
                           const std::vector<uint32_t> &registers) override {
    constexpr unsigned threads = 64;
    std::vector<float> wide(registers.size() * (type == "float8" ? 4 : 2));
    const size_t bytes = registers.size() * 4, wideBytes = wide.size() * 4;
    CurrentContext current(*context);
    const Module module = compiled(
        "widen_" + type, text("#include \"ss/half.cuh\"\nusing Element = ss::",
                              type, ";", kWidenSource));
    OwnStream stream(context);
    DeviceMemory from(context, bytes), to(context, wideBytes);
    stream.copyIn(from.address(), registers.data(), bytes);
    CUdeviceptr addresses[] = {from.address(), to.address()};
    void *parameters[] = {&addresses[0], &addresses[1]};
    SS_CUDA(context->driver(),
            cuLaunchKernel(module.function("widen"),
                           unsigned(registers.size() / threads), 1, 1, threads,
                           1, 1, 0, stream.get(), parameters, nullptr));
    stream.copyOut(wide.data(), addresses[1], wideBytes);
    return wide;
  }

private:
  Module compiled(const std::string &name, const std::string &source) {
    std::vector<nvrtc::Header> headers;
    for (const DeviceHeader &header : getDeviceHeaderTexts())
      headers.push_back({header.name, header.text});
    return Module(context, name,
                  compiler.compile({{name, source}}, headers).front());
  }

  const Module &moduleOf(int m) {
    if (auto known = modules.find(m); known != modules.end())
      return known->second;
    return modules
        .emplace(m, compiled(text("routines_", m),
                             text("constexpr int kSize = ", m, ";", kSource)))
        .first->second;
  }

  /// One warp a matrix; the first array holds the matrices. All come back.
  std::vector<int32_t> run(int m, const char *routine,
                           const std::vector<std::vector<double> *> &arrays) {
    const size_t count = arrays.front()->size() / size_t(m * m);
    std::vector<int32_t> status(count, -1);
    CurrentContext current(*context);
    const CUfunction function = moduleOf(m).function(routine);
    OwnStream stream(context);
    std::vector<DeviceMemory> memory;
    for (const std::vector<double> *array : arrays) {
      memory.emplace_back(context, array->size() * sizeof(double));
      stream.copyIn(memory.back().address(), array->data(),
                    array->size() * sizeof(double));
    }
    memory.emplace_back(context, count * sizeof(int32_t));
    std::vector<CUdeviceptr> addresses;
    for (const DeviceMemory &array : memory)
      addresses.push_back(array.address());
    std::vector<void *> parameters;
    for (CUdeviceptr &address : addresses)
      parameters.push_back(&address);
    SS_CUDA(context->driver(),
            cuLaunchKernel(function, unsigned(count), 1, 1, 32, 1, 1, 0,
                           stream.get(), parameters.data(), nullptr));
    for (size_t i = 0; i < arrays.size(); ++i)
      stream.copyOut(arrays[i]->data(), addresses[i],
                     arrays[i]->size() * sizeof(double));
    stream.copyOut(status.data(), addresses.back(), count * sizeof(int32_t));
    return status;
  }

  std::shared_ptr<const Context> context;
  KernelCompiler compiler;
  std::map<int, Module> modules; ///< by m
};

} // namespace

std::unique_ptr<RoutineRunner> RoutineRunner::open(std::string &reason) {
  try {
    return std::make_unique<DeviceRoutines>(Context::open(Driver::get(), 0));
  } catch (const Failure &failure) {
    reason = failure.what();
    return nullptr;
  }
}

} // namespace sinkstate::test
