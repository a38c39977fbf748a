//===- InitBench.cpp - Time of an init kernel -----------------------------===//

#include "InitBench.h"

#include "CpuInit.h"
#include "Gesvda.h"
#include "InitCheck.h"

#include "capi/Failure.h"
#include "handover/InitialState.h"
#include "sinkstate/sinkstate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;
using namespace ss_bench;

namespace {

/// The states of 128 requests of a model with 21 layers of 96 heads.
constexpr int32_t kGpuStates = 258048;
/// Matrices that differ; further ones repeat them.
constexpr int32_t kDistinct = 1024;
/// What a processor has made in a few seconds.
constexpr int32_t kCpuStates = 1024;

const LayerManifest &layerWithInit(const Manifest &manifest) {
  for (const LayerManifest &layer : manifest.layers)
    if (layer.init != kNoKernel)
      return layer;
  fail(SS_NOT_FOUND, "the package of model '", manifest.model,
       "' has no init kernel, expected one made with ss-compile --init");
}

/// The arrays of one chunk, and the launches over them.
class InitBench {
public:
  InitBench(CudaSession &session, const InitOptions &options,
            const Package &package, const Spectra &spectra)
      : session(session), options(options), spectra(spectra),
        layer(layerWithInit(package.manifest())),
        kernels(session.sharedContext(), package,
                KernelCompiler(*session.sharedContext())),
        most(mostInitialRows(layer)), width(layer.dk + layer.dv),
        floats(int64_t(layer.dk) * layer.dv) {
    chunk = chunkStates();
    makeArrays();
  }
  ~InitBench() {
    for (void *memory : owned)
      session.free(memory);
  }
  InitBench(const InitBench &) = delete;
  InitBench &operator=(const InitBench &) = delete;

  void time(InitResult &result) {
    std::vector<double> times;
    for (int32_t i = 0; i <= options.repeats; ++i)
      times.push_back(session.timed([&] { launchAll(); }));
    times.erase(times.begin()); // the first one warms up
    std::nth_element(times.begin(), times.begin() + options.repeats / 2,
                     times.end());
    result.milliseconds = times[size_t(options.repeats) / 2];
    result.chunk = chunk;
  }
  FoundStates found();
  void free(void *memory) {
    session.free(memory);
    std::erase(owned, memory);
  }
  float *matrices = nullptr;

private:
  int32_t chunkStates() const {
    const int64_t each = (floats + most * (width + 1)) * 4 + 3 * 8 + 3 * 4;
    const int64_t fit = int64_t(session.freeBytes()) / 10 * 9 / each;
    if (fit < 1)
      fail(SS_OUT_OF_MEMORY, "one state takes ", each,
           " bytes, expected so much free memory on the GPU");
    const int64_t wanted = options.chunk > 0 ? options.chunk : options.states;
    return int32_t(std::min({wanted, fit, int64_t(options.states)}));
  }

  template <typename T> T *array(int64_t elements) {
    owned.push_back(session.allocate(size_t(elements) * sizeof(T)));
    return static_cast<T *>(owned.back());
  }
  template <typename T> T *filled(const std::vector<T> &values) {
    T *memory = array<T>(int64_t(values.size()));
    session.upload(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }

  void makeArrays() {
    std::vector<int64_t> bases, places;
    std::vector<int32_t> order(static_cast<size_t>(chunk));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i < chunk; ++i) {
      bases.push_back(i * most);
      places.push_back(i * floats);
    }
    matrices = array<float>(chunk * floats);
    const auto distinct = size_t(std::min(chunk, spectra.count)) *
                          size_t(floats) * sizeof(float);
    session.upload(matrices, spectra.columns.data(), distinct);
    session.repeat(matrices, distinct,
                   size_t(chunk) * size_t(floats) * sizeof(float));
    rows = array<float>(chunk * most * width);
    weights = array<float>(chunk * most);
    rank = array<int32_t>(chunk);
    status = array<int32_t>(chunk);
    values.setPointer(Argument::Factors, rows);
    values.setPointer(Argument::Weights, weights);
    values.setPointer(Argument::RowBase, filled(bases));
    values.setPointer(Argument::Rank, rank);
    values.setPointer(Argument::Status, status);
    values.setPointer(Argument::Work, filled(order));
    values.setPointer(Argument::Matrices, matrices);
    values.setPointer(Argument::MatrixBase, filled(places));
    values.setF32(Argument::PolicyValue, options.eps);
    values.setI32(Argument::MaxRank, most);
    values.setI64(Argument::Seed, 1);
    const int32_t rest = options.states % chunk;
    wholeCount = filled(std::vector<int32_t>{chunk});
    restCount = filled(std::vector<int32_t>{rest});
  }

  void launchAll() {
    for (int64_t done = 0; done < options.states; done += chunk) {
      const bool whole = options.states - done >= chunk;
      values.setPointer(Argument::WorkCount, whole ? wholeCount : restCount);
      kernels.launch(layer.init, values,
                     whole ? chunk : options.states - done, session.stream());
    }
  }

  CudaSession &session;
  const InitOptions &options;
  const Spectra &spectra;
  const LayerManifest &layer;
  PackageKernels kernels;
  int32_t most;
  int64_t width, floats;
  int32_t chunk = 0;
  std::vector<void *> owned;
  float *rows = nullptr, *weights = nullptr;
  int32_t *rank = nullptr, *status = nullptr;
  int32_t *wholeCount = nullptr, *restCount = nullptr;
  ArgumentValues values;
};

FoundStates InitBench::found() {
  FoundStates states;
  states.chunk = chunk, states.most = most;
  states.ranks.resize(size_t(chunk));
  states.status.resize(size_t(chunk));
  const int64_t distinct = std::min(chunk, spectra.count);
  states.weights.resize(size_t(distinct * most));
  states.rows.resize(size_t(std::min(distinct, kMultiplied) * most * width));
  session.download(states.ranks.data(), rank,
                   states.ranks.size() * sizeof(int32_t));
  session.download(states.status.data(), status,
                   states.status.size() * sizeof(int32_t));
  session.download(states.weights.data(), weights,
                   states.weights.size() * sizeof(float));
  session.download(states.rows.data(), rows,
                   states.rows.size() * sizeof(float));
  return states;
}

/// gesvda over the same matrices, tall: the longer side first.
void compare(CudaSession &session, const InitOptions &options,
             const Spectra &spectra, int32_t most, InitResult &result) {
  if (options.solverStates == 0) {
    result.noSolver = "not asked for";
    return;
  }
  std::unique_ptr<Gesvda> solver = Gesvda::open(session, result.noSolver);
  if (!solver)
    return;
  const bool tall = spectra.dv >= spectra.dk;
  const std::vector<float> &from = tall ? spectra.columns : spectra.rows;
  const int m = std::max(spectra.dv, spectra.dk);
  const int n = std::min(spectra.dv, spectra.dk);
  result.solverStates = std::min(options.solverStates, options.states);
  result.solverRank = most;
  const size_t bytes =
      size_t(result.solverStates) * size_t(m) * size_t(n) * sizeof(float);
  const size_t distinct = std::min(bytes, from.size() * sizeof(float));
  auto *matrices = static_cast<float *>(session.allocate(bytes));
  session.upload(matrices, from.data(), distinct);
  session.repeat(matrices, distinct, bytes);
  std::vector<float> largest;
  try {
    result.solverMilliseconds =
        solver->time(matrices, m, n, most, int(result.solverStates),
                     options.repeats, largest);
  } catch (const Failure &failure) {
    // Its figure is missing; the kernel's stays.
    result.noSolver = failure.what();
  }
  for (float value : largest) // all begin with 1
    result.solverWeightError = std::max(result.solverWeightError,
                                        std::fabs(double(value) - 1));
  session.free(matrices);
}

/// The package's kernel on the processor, over matrices that all differ.
void measureOnCpu(const InitOptions &options, const Package &package,
                  const Spectra &spectra, InitResult &result) {
  package.requireCpuCode();
  const LayerManifest &layer = layerWithInit(package.manifest());
  CpuDevice device(options.threads);
  CpuInit init(device, package, layer, spectra, options.eps);
  std::vector<double> times;
  for (int32_t i = 0; i < options.repeats; ++i)
    times.push_back(init.run());
  std::nth_element(times.begin(), times.begin() + options.repeats / 2,
                   times.end());
  result.device =
      "the CPU, " + std::to_string(device.threads()) + " threads";
  result.milliseconds = times[size_t(options.repeats) / 2];
  result.chunk = spectra.count;
  checkInit(spectra, layer, options.eps, init.found(), result);
  result.noSolver = "not beside a CPU";
}

void measureOnGpu(const InitOptions &options, const Package &package,
                  const Spectra &spectra, InitResult &result) {
  const LayerManifest &layer = layerWithInit(package.manifest());
  CudaSession session(options.device);
  result.device = session.description();
  result.copyBandwidth = session.copyBandwidth(size_t(options.copyMib) << 20);
  {
    InitBench bench(session, options, package, spectra);
    bench.time(result);
    checkInit(spectra, layer, options.eps, bench.found(), result);
  }
  compare(session, options, spectra, mostInitialRows(layer), result);
}

} // namespace

InitResult ss_bench::measureInit(const InitOptions &given,
                                 const RankProfile &profile) {
  const std::shared_ptr<const Package> package = Package::open(given.package);
  const LayerManifest &layer = layerWithInit(package->manifest());
  InitOptions options = given;
  if (options.states == 0)
    options.states = options.cuda ? kGpuStates : kCpuStates;
  InitResult result;
  result.package = options.package;
  result.profile = options.profile;
  result.layer = layer.name;
  result.dv = layer.dv, result.dk = layer.dk;
  result.eps = options.eps;
  result.states = options.states;
  if (!hasInitKernel(layer, options.eps))
    fail(SS_INVALID_ARGUMENT, "--eps ", options.eps, ", expected at least ",
         SS_INIT_LEAST_EPS, ": what is below is not the kernel's");
  const Spectra spectra(
      layer.dv, layer.dk,
      options.cuda ? std::min(options.states, kDistinct) : options.states,
      options.eps, profile, 3);
  (options.cuda ? measureOnGpu : measureOnCpu)(options, *package, spectra,
                                               result);
  return result;
}
