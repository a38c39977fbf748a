//===- WholeStateTest.cpp - Compacted states against the oracle -----------===//
//
// The first compaction of a fresh request, layer by layer: no component is
// frozen yet, so that the block is the whole state, and the stored weights have
// to be the singular values of H.
//
// The state that a compaction found is never in memory as such: the step that
// fills the buffer also compacts. But its y = H q comes from before, so that
// requests which differ in nothing but their queries, one for every unit
// vector, give the columns of H. The scale of the queries inside the kernel is
// found at the first token, where H can be looked at.
//
//===----------------------------------------------------------------------===//

#include "PackageModels.h"
#include "SvdOracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace sinkstate;
using namespace sinkstate::reference;
using namespace sinkstate::test;

namespace {

/// How far weights and states in single precision may be off, as a share of
/// the largest weight or of |H|.
constexpr double kTolerance = 1e-5;
/// Below this share of the largest a component counts as zero.
constexpr double kNumericallyZero = 0x1p-22;

/// Tokens before the first compaction.
int64_t firstCompaction(const LayerSpec &layer) {
  return layer.phase > 0 ? layer.phase : layer.buffer;
}

/// The step that makes it, one later where it comes before the step's token.
int64_t compactingStep(const LayerSpec &layer) {
  return firstCompaction(layer) - !layer.compactsBefore();
}

/// Inputs of one layer, the same in every row but for the queries: row i asks
/// for column i of H.
class ProbedLayer {
public:
  ProbedLayer(Engine &engine, const LayerSpec &layer, size_t rows)
      : layer(layer), rows(rows), request(layer, 31, ordinaryStyle()),
        q(engine, rows * size_t(layer.keyFloats())), k(engine, q.size()),
        v(engine, rows * size_t(layer.valueFloats())),
        gate(engine, rows * size_t(layer.gateFloats())),
        beta(engine, rows * size_t(layer.heads)), y(engine, v.size()),
        aLog(engine, size_t(layer.heads)),
        dtBias(engine, size_t(layer.gateFloats())) {
    const LayerWeights weights = randomWeights(layer, 31);
    aLog.copyIn(weights.aLog);
    dtBias.copyIn(weights.dtBias);
    std::vector<float> queries(q.size());
    for (size_t row = 0; row < rows; ++row)
      for (int32_t head = 0; head < layer.keyHeads; ++head)
        queries[(row * size_t(layer.keyHeads) + size_t(head)) *
                    size_t(layer.dk) +
                row % size_t(layer.dk)] = 1;
    q.copyIn(queries);
  }

  void decode(Engine &engine, int32_t index, const int32_t *slots,
              int64_t position) {
    TokenValues token = request.token(position);
    // The token behind a compaction changes nothing: no decay, no update.
    if (position == firstCompaction(layer)) {
      std::fill(token.gate.begin(), token.gate.end(), -1e4f);
      std::fill(token.beta.begin(), token.beta.end(), -1e4f);
    }
    copyToAllRows(k, token.k);
    copyToAllRows(v, token.v);
    copyToAllRows(gate, token.gate);
    if (layer.hasBeta())
      copyToAllRows(beta, token.beta);
    ss_decode_args args = decodeArgs();
    args.batch = int32_t(rows);
    args.slots = slots;
    args.q = {q.data(), 0};
    args.k = {k.data(), 0};
    args.v = {v.data(), 0};
    args.gate = {gate.data(), 0};
    args.beta = {layer.hasBeta() ? beta.data() : nullptr, 0};
    args.a_log = aLog.data();
    args.dt_bias = dtBias.data();
    args.y = y.data();
    engine.decodeLayer(index, args);
  }

  /// H of every head, [heads, dv, dk], from the last y, times the scale of
  /// the queries.
  std::vector<double> columns() const {
    const std::vector<float> values = y.copyOut();
    std::vector<double> state(size_t(layer.valueFloats()) * size_t(layer.dk));
    for (size_t column = 0; column < size_t(layer.dk); ++column)
      for (size_t i = 0; i < size_t(layer.valueFloats()); ++i)
        state[i * size_t(layer.dk) + column] =
            values[column * size_t(layer.valueFloats()) + i];
    return state;
  }

private:
  void copyToAllRows(DeviceArray<float> &array,
                     const std::vector<float> &token) const {
    std::vector<float> values;
    for (size_t row = 0; row < rows; ++row)
      values.insert(values.end(), token.begin(), token.end());
    array.copyIn(values);
  }

  const LayerSpec &layer;
  size_t rows;
  RandomRequest request;
  DeviceArray<float> q, k, v, gate, beta, y, aLog, dtBias;
};

/// What a compaction did to the states of one layer.
struct Compacted {
  std::vector<double> before, after; ///< [heads, dv, dk]
  std::vector<int32_t> ranks, status;
};

std::vector<double> toDouble(const std::vector<float> &values) {
  return std::vector<double>(values.begin(), values.end());
}

/// The factor f that makes f * b closest to a.
double scaleOf(const std::vector<double> &a, const std::vector<double> &b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) /
         std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
}

/// Decodes until every factored layer has compacted once.
std::vector<Compacted> compactOnce(Engine &engine,
                                   const std::vector<LayerSpec> &layers,
                                   size_t rows) {
  std::vector<int32_t> list;
  std::vector<ProbedLayer> inputs;
  for (size_t row = 0; row < rows; ++row)
    list.push_back(engine.allocateSlot());
  DeviceArray<int32_t> slots(engine, rows);
  slots.copyIn(list);
  int64_t last = 0;
  inputs.reserve(layers.size());
  for (const LayerSpec &layer : layers) {
    inputs.emplace_back(engine, layer, rows);
    last = std::max(last, layer.denseForm ? 0 : compactingStep(layer) + 1);
  }
  std::vector<Compacted> results(layers.size());
  std::vector<double> scale(layers.size());
  for (int64_t position = 0; position < last; ++position) {
    engine.beginStep(slots.data(), int32_t(rows));
    for (size_t l = 0; l < layers.size(); ++l)
      inputs[l].decode(engine, int32_t(l), slots.data(), position);
    engine.endStep(slots.data(), int32_t(rows));
    for (size_t l = 0; l < layers.size(); ++l) {
      if (layers[l].denseForm)
        continue;
      auto state = [&] {
        return toDouble(engine.densify(int32_t(l), list.front()));
      };
      if (position == 0)
        scale[l] = scaleOf(inputs[l].columns(), state());
      Compacted &result = results[l];
      if (position + 1 == firstCompaction(layers[l])) {
        result.before = inputs[l].columns();
        for (double &x : result.before)
          x /= scale[l];
      }
      if (position != compactingStep(layers[l]))
        continue;
      result.after = state();
      result.ranks = engine.ranks(int32_t(l), list.front());
      result.status = engine.status(int32_t(l), list.front());
    }
  }
  return results;
}

/// One state: its singular values before and after, and its rank.
struct Spectrum {
  const double *before, *after;
  int32_t values, rank;
  bool limited; ///< the rows that there are decided, not the policy

  double droppedSquares(int32_t from) const {
    double sum = 0;
    for (int32_t i = from; i < values; ++i)
      sum += before[i] * before[i];
    return sum;
  }
  double droppedSum() const {
    return std::accumulate(before + rank, before + values, 0.0);
  }
};

void checkPolicy(const LayerSpec &layer, const Spectrum &spectrum) {
  const double largest = spectrum.before[0], slack = kTolerance * largest;
  const int32_t rank = spectrum.rank;
  const double kept = spectrum.before[rank - 1];
  const double dropped =
      rank < spectrum.values ? spectrum.before[rank] : 0.0;
  if (layer.policyKind == "relative") {
    const double threshold =
        std::max(layer.policyValue, kNumericallyZero) * largest;
    EXPECT_GE(kept, threshold - slack);
    if (!spectrum.limited)
      EXPECT_LE(dropped, threshold + slack);
  } else if (layer.policyKind == "fixed") {
    EXPECT_LE(rank, int32_t(layer.policyValue));
    if (rank < int32_t(layer.policyValue))
      EXPECT_LE(dropped, slack);
  } else if (layer.policyKind == "energy") {
    const double total = spectrum.droppedSquares(0);
    const double allowed = (1 - layer.policyValue) * total;
    const double rounding = 2 * slack * largest;
    EXPECT_GE(spectrum.droppedSquares(rank - 1), allowed - rounding);
    if (!spectrum.limited)
      EXPECT_LE(spectrum.droppedSquares(rank), allowed + rounding);
  }
}

/// What a compaction may move a state by: the weights it dropped.
double allowedMove(const LayerSpec &layer, const Spectrum &spectrum) {
  if (layer.core == "svd")
    return spectrum.droppedSum();
  // The weights are not singular values. Each one dropped is below the
  // threshold; where a number of components is given, they are those that a
  // rank-revealing decomposition ranks last.
  if (layer.policyKind == "relative" && !spectrum.limited)
    return spectrum.before[0] * (layer.active + layer.buffer + layer.draft) *
           std::max(layer.policyValue, kNumericallyZero);
  return 4 * spectrum.droppedSum();
}

void checkSpectrum(const LayerSpec &layer, const Spectrum &spectrum) {
  ASSERT_GE(spectrum.rank, 1);
  ASSERT_LE(spectrum.rank, spectrum.values);
  if (layer.core != "svd")
    return;
  const double slack = kTolerance * spectrum.before[0];
  for (int32_t i = 0; i < spectrum.values; ++i)
    EXPECT_NEAR(spectrum.after[i],
                i < spectrum.rank ? spectrum.before[i] : 0.0, slack)
        << "singular value " << i << ", rank " << spectrum.rank;
  checkPolicy(layer, spectrum);
}

class WholeState : public OnGpu {};

TEST_P(WholeState, HasTheOraclesWeightsAfterACompaction) {
  std::string reason;
  const std::unique_ptr<SvdOracle> oracle = SvdOracle::open(reason);
  if (!oracle)
    GTEST_SKIP() << reason;
  const std::vector<LayerSpec> layers = layersOf(folder());
  int32_t rows = 0, capacity = 0;
  for (const LayerSpec &layer : layers)
    if (!layer.denseForm) {
      rows = std::max(rows, layer.dk);
      capacity = std::max(capacity, layer.active + 2 * layer.buffer +
                                        layer.draft);
    }
  if (rows == 0)
    GTEST_SKIP() << "no factored layer";
  ss_engine_options options = cudaOptions(rows);
  options.row_capacity = capacity;
  Package package = Package::open(folder());
  Engine engine(package, options);
  const std::vector<Compacted> results =
      compactOnce(engine, layers, size_t(rows));
  int states = 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    const LayerSpec &layer = layers[l];
    if (layer.denseForm)
      continue;
    const Compacted &result = results[l];
    const int32_t values = std::min(layer.dv, layer.dk);
    const std::vector<double> before =
        oracle->singularValues(result.before, layer.dv, layer.dk);
    const std::vector<double> after =
        oracle->singularValues(result.after, layer.dv, layer.dk);
    for (int32_t head = 0; head < layer.heads; ++head, ++states) {
      SCOPED_TRACE(layer.name + ", head " + std::to_string(head));
      const int32_t status = result.status[size_t(head)];
      EXPECT_EQ(status & ~SS_STATUS_TIGHTENED, 0);
      const Spectrum spectrum = {&before[size_t(head * values)],
                                 &after[size_t(head * values)], values,
                                 result.ranks[size_t(head)],
                                 (status & SS_STATUS_TIGHTENED) != 0};
      checkSpectrum(layer, spectrum);
      double squares = 0, moved = 0;
      const size_t floats = size_t(layer.dv) * size_t(layer.dk);
      for (size_t i = size_t(head) * floats; i < size_t(head + 1) * floats;
           ++i) {
        squares += result.before[i] * result.before[i];
        moved += std::pow(result.after[i] - result.before[i], 2);
      }
      EXPECT_LE(std::sqrt(moved),
                allowedMove(layer, spectrum) +
                    kTolerance * std::sqrt(squares));
    }
  }
  RecordProperty("states", states);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WholeState);
INSTANTIATE_TEST_SUITE_P(Packages, WholeState,
                         testing::ValuesIn(packageFolders()), packageName);

} // namespace
