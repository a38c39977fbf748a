//===- InitBench.cpp - Time of an init kernel on a GPU --------------------===//

#include "InitBench.h"

#include "Gesvda.h"

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

/// Matrices that differ; further ones repeat them.
constexpr int32_t kDistinct = 1024;
/// States whose factors are multiplied out again.
constexpr int64_t kMultiplied = 128;

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
                KernelCompiler(session.sharedContext()->architecture())),
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
  void check(InitResult &result);
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

  void checkWeights(int64_t i, int32_t found, const float *foundWeights,
                    InitResult &result) const;
  double errorOf(int64_t i, int32_t found, const std::vector<float> &foundRows,
                 const float *foundWeights) const;

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

void InitBench::checkWeights(int64_t i, int32_t found,
                             const float *foundWeights,
                             InitResult &result) const {
  for (int32_t j = 0; j < found; ++j) {
    const double exact = spectra.valuesOf(i)[j];
    const double error = std::fabs(foundWeights[j] - exact) / exact;
    // A comparison with NaN is false: say so as infinity.
    result.weightError =
        std::isnan(error) ? HUGE_VAL : std::max(result.weightError, error);
  }
}

/// |H - found|_F over what dropping the other components costs, and rounding.
double InitBench::errorOf(int64_t i, int32_t found,
                          const std::vector<float> &foundRows,
                          const float *foundWeights) const {
  std::vector<double> rest(spectra.columns.begin() + i * floats,
                           spectra.columns.begin() + (i + 1) * floats);
  for (int32_t j = 0; j < found; ++j) {
    const float *row = foundRows.data() + j * width;
    for (int64_t k = 0; k < layer.dk; ++k)
      for (int64_t v = 0; v < layer.dv; ++v)
        rest[size_t(k * layer.dv + v)] -=
            double(foundWeights[j]) * row[k] * row[layer.dk + v];
  }
  double error = 0, dropped = 0, all = 0;
  for (double x : rest)
    error += x * x;
  for (int32_t j = 0; j < std::min(layer.dv, layer.dk); ++j) {
    const double square = spectra.valuesOf(i)[j] * spectra.valuesOf(i)[j];
    all += square;
    dropped += j >= found ? square : 0;
  }
  return std::sqrt(error) / (std::sqrt(dropped) + 1e-5 * std::sqrt(all));
}

void InitBench::check(InitResult &result) {
  std::vector<int32_t> ranks(static_cast<size_t>(chunk)), bits(ranks.size());
  session.download(ranks.data(), rank, ranks.size() * sizeof(int32_t));
  session.download(bits.data(), status, bits.size() * sizeof(int32_t));
  double sum = 0, dense = 0;
  for (int32_t found : ranks) {
    sum += std::max(found, 0);
    dense += found < 0;
  }
  result.denseShare = dense / double(chunk);
  result.meanRank = dense < chunk ? sum / (double(chunk) - dense) : 0;
  const double share = double(options.states) / double(chunk);
  result.readBytes = double(options.states) * double(floats) * 4;
  result.writtenBytes = share * sum * double(width + 1) * 4;
  const int64_t distinct = std::min(chunk, spectra.count);
  std::vector<float> some(size_t(distinct * most)),
      factors(size_t(most * width));
  session.download(some.data(), weights, some.size() * sizeof(float));
  for (int64_t i = 0; i < distinct; ++i) {
    const int32_t exact = spectra.rank[size_t(i)];
    const int32_t found = ranks[size_t(i)];
    const float *foundWeights = some.data() + i * most;
    ++result.checked;
    result.wrongRanks += bits[size_t(i)] != 0 ||
                         found != (exact > most ? -1 : exact);
    if (found < 0)
      continue;
    checkWeights(i, found, foundWeights, result);
    if (i >= kMultiplied)
      continue;
    session.download(factors.data(), rows + i * most * width,
                     factors.size() * sizeof(float));
    const double error = errorOf(i, found, factors, foundWeights);
    result.boundShare =
        std::isnan(error) ? HUGE_VAL : std::max(result.boundShare, error);
  }
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

} // namespace

InitResult ss_bench::measureInit(const InitOptions &options,
                                 const RankProfile &profile) {
  const std::shared_ptr<const Package> package =
      Package::open(options.package);
  const LayerManifest &layer = layerWithInit(package->manifest());
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
  CudaSession session(options.device);
  result.device = session.description();
  result.copyBandwidth = session.copyBandwidth(size_t(options.copyMib) << 20);
  const Spectra spectra(layer.dv, layer.dk,
                        std::min(options.states, kDistinct), options.eps,
                        profile, 3);
  {
    InitBench bench(session, options, *package, spectra);
    bench.time(result);
    bench.check(result);
  }
  compare(session, options, spectra, mostInitialRows(layer), result);
  return result;
}
