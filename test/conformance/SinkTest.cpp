//===- SinkTest.cpp - States with a sink ----------------------------------===//
//
// H = vbar c^T + U V^T (docs/state-math.md section 5): the update is exact, the
// content alone is truncated, and vbar^T H never is.
//
//===----------------------------------------------------------------------===//

#include "SinkFixture.h"

#include "LayerMath.h"

#include <Eigen/SVD>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

using Doubles = std::vector<double>;

class Sinks : public SinkFixture {
protected:
  /// The slot's state of a layer becomes `state`, [heads, dv, dk].
  static void initialise(Sunk &run, int32_t slot, size_t layer,
                         const reference::Vector &state) {
    const LayerSpec &spec = run.layers[layer];
    DeviceArray<float> dense(run.engine, state.size());
    dense.copyIn({state.begin(), state.end()});
    ss_dense_layout layout = {};
    layout.struct_size = sizeof layout;
    layout.type = SS_ELEMENT_F32;
    layout.dk_stride = 1;
    layout.dv_stride = spec.dk;
    layout.head_stride = spec.dv * spec.dk;
    layout.slot_stride = spec.heads * layout.head_stride;
    ss_init_options options = {};
    options.struct_size = sizeof options;
    options.eps = 1e-4f;
    check(ss_state_init(run.engine.get(), int32_t(layer), &slot, nullptr, 1,
                        dense.data(), &layout, &options, nullptr));
  }
};

TEST_P(Sinks, LetChainsBeExact) {
  Sunk run(GetParam());
  DrivenRequest request = run.request(1, run.style());
  for (int step = 0; step < 70; ++step) {
    std::vector<size_t> compacted;
    for (size_t layer = 0; layer < run.layers.size(); ++layer)
      if (run.compactsNext(request, layer))
        compacted.push_back(layer);
    ASSERT_LE(run.errorBeforeCompactions(run.driver.step({&request}), compacted),
              1e-5)
        << "token " << step;
    for (size_t layer : compacted)
      run.driver.rebase(request, layer);
  }
}

// The first compaction of K pairs stores K components and the sink, the most
// that ever become of an empty state, and each head's stay in its own block.
TEST_P(Sinks, HaveRoomBesideAFirstFullBuffer) {
  Sunk run(GetParam());
  DrivenRequest request = run.request(7, run.style());
  std::vector<bool> isDone(run.layers.size());
  for (int step = 0; step < 16; ++step) {
    std::vector<size_t> compacted;
    for (size_t layer = 0; layer < run.layers.size(); ++layer)
      if (!isDone[layer] && run.compactsNext(request, layer))
        compacted.push_back(layer);
    run.driver.step({&request});
    for (size_t layer : compacted) {
      isDone[layer] = true;
      EXPECT_LE(run.driver.stateError(request, layer), 1e-6)
          << "layer " << layer;
    }
  }
}

// What is truncated has nothing of vbar: the content is orthogonal to it, and
// the sink goes on by itself.
TEST_P(Sinks, AreNeverTruncated) {
  Sunk run(GetParam());
  DrivenRequest request = run.request(2, run.style());
  for (int step = 0; step < 200; ++step)
    run.driver.step({&request});
  bool truncated = false;
  for (size_t layer = 0; layer < run.layers.size(); ++layer)
    if (run.layers[layer].sinkForm) {
      // What each compaction rounds, c's elements, its length and the pairs'
      // shares, is a few units of 2^-24 and decays with c; truncation is far
      // above it.
      EXPECT_LE(sinkError(run, request, layer), 1e-6) << "layer " << layer;
      truncated |= run.driver.stateError(request, layer) > 1e-3;
    }
  EXPECT_TRUE(truncated) << "a test of nothing";
}

// A mean value is a direction. Its length, from the smallest float32 numbers to
// the largest, changes no bit of a request, before a prefill or after it.
TEST_P(Sinks, HaveNoLength) {
  using Outputs = std::vector<std::vector<float>>; // of a token, by layer
  std::vector<Outputs> first;
  for (float scale : {1.0f, 0x1p-149f, 0x1p-143f, 0x1p-127f, 0x1p-70f, 0x1p66f,
                      0x1p124f}) {
    Sunk run(GetParam(), 1, false);
    for (size_t layer = 0; layer < run.layers.size(); ++layer) {
      std::vector<float> means = run.means[layer];
      for (float &x : means) // few digits: every scale keeps them
        x = std::clamp(std::round(16 * x), -15.0f, 15.0f) * scale;
      if (run.layers[layer].sinkForm)
        run.engine.setSink(int32_t(layer), means);
    }
    DrivenRequest request = run.request(11, run.style());
    std::vector<Outputs> all;
    for (int step = 0; step < 50; ++step) {
      if (step == 25)
        for (size_t layer = 0; layer < run.layers.size(); ++layer)
          if (run.layers[layer].sinkForm)
            initialise(run, request.slot, layer, request.exact(layer).state());
      all.push_back(rowOf(run.driver.step({&request}), 0, run.layers));
      for (const std::vector<float> &values : all.back())
        for (float x : values)
          ASSERT_TRUE(std::isfinite(x)) << "scale " << scale << ", token " << step;
    }
    if (first.empty())
      first = all;
    for (size_t step = 0; step < all.size(); ++step)
      ASSERT_EQ(all[step], first[step]) << "scale " << scale << ", token " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, Sinks,
    onEveryBackEnd({"gdn_sink", "mamba2_sink", "kda_sink", "mixed_sink"}),
    caseName);

// A snapshot of a state that was never compacted has no sink in it; the restored
// one takes it in like the first.
TEST_P(Sinks, AreTakenInAfterARestore) {
  Sunk run(GetParam(), 2);
  DrivenRequest first = run.request(8, run.style());
  for (int step = 0; step < 2; ++step)
    run.driver.step({&first});
  DrivenRequest second = run.request(8, run.style());
  run.engine.restore(second.slot, run.engine.snapshot(first.slot));
  second.position = first.position;
  for (int step = 0; step < 40; ++step) {
    for (size_t layer = 0; layer < run.layers.size(); ++layer)
      second.exact(layer) = first.exact(layer);
    const StepResult y = run.driver.step({&first, &second});
    ASSERT_EQ(rowOf(y, 0, run.layers), rowOf(y, 1, run.layers))
        << "token " << step;
  }
}

class SinkTruncation : public Sinks {
protected:
  using Matrix =
      Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// Sum of squares that the best content of `rank` components leaves of H.
  static double droppedEnergy(const Matrix &h, const float *mean, int64_t rank) {
    Eigen::VectorXd vbar(h.rows());
    for (int64_t v = 0; v < h.rows(); ++v)
      vbar[v] = mean[v];
    Matrix content = h;
    if (vbar.squaredNorm() > 0)
      content -= vbar * (vbar.transpose() * h) / vbar.squaredNorm();
    const Eigen::VectorXd sigma =
        Eigen::JacobiSVD<Eigen::MatrixXd>(content).singularValues();
    return sigma.tail(std::max<int64_t>(0, sigma.size() - rank)).squaredNorm();
  }
};

// What a compression drops of the content is what an exact SVD would drop. A
// pivoted orthogonalisation drops more, half as much again in energy at most and
// a fifth on the mean (kDroppedByQr, kMeanByQr).
TEST_P(SinkTruncation, IsThatOfAnExactSvd) {
  constexpr double kDroppedByQr = 1.5, kMeanByQr = 1.2;
  Sunk run(GetParam());
  const LayerSpec &spec = run.layers[0];
  const bool qr = spec.core == "qr";
  DrivenRequest request = run.request(9, run.style());
  double most = 0;
  Doubles ratios;
  for (int step = 0; step < 64; ++step) {
    const bool compacts = run.compactsNext(request, 0);
    if (compacts)
      run.driver.rebase(request, 0);
    run.driver.step({&request});
    if (!compacts)
      continue;
    const std::vector<float> after = run.engine.densify(0, request.slot);
    const reference::Vector &before = request.exact(0).state();
    for (int64_t head = 0; head < spec.heads; ++head) {
      const int64_t size = spec.dv * spec.dk;
      const Matrix h = Eigen::Map<const Matrix>(before.data() + head * size,
                                                spec.dv, spec.dk);
      double off = 0;
      for (int64_t i = 0; i < size; ++i) {
        const double each = after[size_t(head * size + i)] - h.data()[i];
        off += each * each;
      }
      const double dropped = droppedEnergy(
          h, run.means[0].data() + head * spec.dv, int64_t(spec.policyValue));
      const double rounding = 1e-5 * h.norm();
      if (dropped > 1e-4 * h.squaredNorm())
        ratios.push_back(off / dropped);
      EXPECT_LE(off, (qr ? kDroppedByQr : 1.001) * dropped + rounding * rounding)
          << "head " << head << ", token " << step;
      EXPECT_GE(off, 0.999 * dropped - rounding * rounding)
          << "head " << head << ", token " << step;
      most = std::max(most, dropped / h.squaredNorm());
    }
  }
  EXPECT_GT(most, 1e-4) << "a test of nothing";
  const double mean =
      std::accumulate(ratios.begin(), ratios.end(), 0.0) / double(ratios.size());
  EXPECT_LE(mean, qr ? kMeanByQr : 1.001);
}

// After a prefill: what a dense state has of vbar becomes the sink, whole, the
// rest is the best content of so many components, and the request goes on.
TEST_P(SinkTruncation, OfADenseStateIsThatOfAnExactSvd) {
  Sunk run(GetParam(), 2);
  const LayerSpec &spec = run.layers[0];
  DrivenRequest first = run.request(5, run.style());
  for (int step = 0; step < 30; ++step)
    run.driver.step({&first});
  DrivenRequest second = run.request(5, run.style());
  second.exact(0) = first.exact(0);
  const reference::Vector &exact = second.exact(0).state();
  initialise(run, second.slot, 0, exact);
  const std::vector<float> kept = run.engine.densify(0, second.slot);
  const std::vector<int32_t> ranks = run.engine.ranks(0, second.slot);
  for (int64_t head = 0; head < spec.heads; ++head) {
    const float *mean = run.means[0].data() + head * spec.dv;
    const bool hasSink = std::any_of(mean, mean + spec.dv,
                                     [](float x) { return x != 0; });
    ASSERT_GT(ranks[size_t(head)], int32_t(hasSink));
    const int64_t at = head * spec.dv * spec.dk;
    const Matrix h = Eigen::Map<const Matrix>(exact.data() + at, spec.dv, spec.dk);
    double lost = 0;
    for (int64_t i = 0; i < spec.dv * spec.dk; ++i)
      lost += std::pow(kept[size_t(at + i)] - exact[size_t(at + i)], 2);
    const double least = droppedEnergy(h, mean, ranks[size_t(head)] - hasSink);
    EXPECT_NEAR(lost, least, 1e-3 * least + 1e-10 * h.squaredNorm())
        << "head " << head;
    EXPECT_GT(least, 1e-4 * h.squaredNorm()) << "a test of nothing";
  }
  second.position = first.position;
  check(ss_slot_set_position(run.engine.get(), second.slot, first.position,
                             nullptr));
  for (int step = 0; step < 60; ++step) {
    run.driver.step({&second});
    ASSERT_LE(sinkError(run, second, 0), 1e-6) << step << " tokens later";
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, SinkTruncation,
                         onEveryBackEnd({"gdn_sink", "mamba2_sink", "kda_sink",
                                         "gdn_sink_qr", "mamba2_sink_qr",
                                         "kda_sink_qr"}),
                         caseName);

class NarrowSinks : public Sinks {};

// A sink in few bits is rounded at every compression and never truncated: what
// one rounding leaves of c decays with it.
TEST_P(NarrowSinks, AreRoundedAndNotTruncated) {
  Sunk run(GetParam());
  DrivenRequest request = run.request(10, run.style());
  for (int step = 0; step < 200; ++step)
    run.driver.step({&request});
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    const std::string &storage = run.layers[layer].storage;
    const double half = storage == "f16"    ? 0x1p-11
                        : storage == "bf16" ? 0x1p-8
                                            : 0x1p-4;
    EXPECT_LE(sinkError(run, request, layer), 2 * half) << "layer " << layer;
    EXPECT_GE(sinkError(run, request, layer), half / 16) << "layer " << layer;
    for (int32_t status : run.engine.status(int32_t(layer), request.slot))
      EXPECT_EQ(status, 0) << "layer " << layer;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, NarrowSinks,
                         onEveryBackEnd({"narrow_sink"}), caseName);

class FullSinks : public Sinks {};

// Where R components hold all of the content nothing is lost at all.
TEST_P(FullSinks, AreExactOverCompactions) {
  Sunk run(GetParam());
  DrivenRequest request = run.request(3, run.style());
  for (int step = 0; step < 150; ++step)
    ASSERT_LE(run.driver.step({&request}).worstError, 2e-5) << "token " << step;
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    EXPECT_LE(run.driver.stateError(request, layer), 2e-5) << "layer " << layer;
    for (int32_t status : run.engine.status(int32_t(layer), request.slot))
      EXPECT_EQ(status, 0);
  }
}

// A state that is not finite says so, sink or not, and the next one is clean.
TEST_P(FullSinks, KeepANaNInItsState) {
  Sunk run(GetParam());
  RequestStyle style;
  style.adjust = [](int64_t position, TokenValues &token) {
    if (position == 2)
      token.v[0] = NAN;
  };
  Running &plain = run;
  DrivenRequest request = run.request(4, style);
  for (int step = 0; step < 30; ++step)
    plain.driver.step({&request});
  EXPECT_TRUE(std::isnan(run.engine.densify(0, request.slot)[0]));
  EXPECT_NE(run.engine.status(0, request.slot)[0] & SS_STATUS_NOT_FINITE, 0);
  run.engine.resetSlot(request.slot);
  EXPECT_EQ(run.engine.densify(0, request.slot)[0], 0);
}

INSTANTIATE_TEST_SUITE_P(Conformance, FullSinks, onEveryBackEnd({"full_sink"}),
                         caseName);

class NoSinks : public ConformanceTest {};

// vbar = 0 is no sink: sink:R is fixed:R, bit by bit, and byte by byte.
TEST_P(NoSinks, AreAFixedRank) {
  const std::string name = GetParam().graph->name;
  const std::string twin = name.substr(0, name.find("_sink")) + "_fixed";
  Case other = GetParam();
  for (const Case &each : casesOf({twin}))
    if (each.backEnd == other.backEnd)
      other = each;
  Running sink(GetParam(), plainOptions(1), false),
      fixed(other, plainOptions(1), false);
  DrivenRequest first = sink.request(5), second = fixed.request(5);
  for (int step = 0; step < 60; ++step) {
    ASSERT_EQ(rowOf(sink.driver.step({&first}), 0, sink.layers),
              rowOf(fixed.driver.step({&second}), 0, fixed.layers))
        << "token " << step;
    ASSERT_EQ(sink.engine.statistics().live_bytes,
              fixed.engine.statistics().live_bytes)
        << "token " << step;
  }
  EXPECT_EQ(sink.engine.statistics().mean_live_bytes,
            fixed.engine.statistics().mean_live_bytes);
}

// Of a sink a request needs the key alone, and only where the head has one.
TEST_P(Sinks, SaveTheirValueWhereAHeadHasOne) {
  const int32_t first = 25;
  Sunk with(GetParam()), without(GetParam(), 1, false);
  DrivenRequest sunk = with.request(5), plain = without.request(5);
  std::vector<int64_t> values(with.layers.size());
  for (int32_t step = 0; step < 2 * first; ++step) {
    with.driver.step({&sunk});
    without.driver.step({&plain});
  }
  for (size_t layer = 0; layer < with.layers.size(); ++layer) {
    const LayerSpec &spec = with.layers[layer];
    const int64_t more = with.engine.layerStatistics(int32_t(layer)).live_bytes -
                         without.engine.layerStatistics(int32_t(layer)).live_bytes;
    // f32: the row of a sink without its value, and its weight.
    const int64_t each = spec.dk * 4 + 4;
    const int64_t sinks = spec.sinkForm ? spec.heads - (spec.heads > 1) : 0;
    EXPECT_EQ(more, sinks * each) << "layer " << layer;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, NoSinks,
                         onEveryBackEnd({"gdn_sink", "mamba2_sink", "kda_sink"}),
                         caseName);

class OpenLoop : public Sinks {
protected:
  /// Per head |H - H64|_F.
  static Doubles errorsOf(Sunk &run, DrivenRequest &request) {
    const LayerSpec &spec = run.layers[0];
    const std::vector<float> h = run.engine.densify(0, request.slot);
    const reference::Vector &exact = request.exact(0).state();
    Doubles squares(size_t(spec.heads));
    for (size_t i = 0; i < h.size(); ++i) {
      const double off = h[i] - exact[i];
      squares[i / size_t(spec.dv * spec.dk)] += off * off;
    }
    for (double &x : squares)
      x = std::sqrt(x);
    return squares;
  }
};

// |error| <= eps_bar / (1 - g_bar^W): eps_bar the largest error of one
// compression, g_bar the largest decay of the head, W tokens between two.
TEST_P(OpenLoop, ErrorsStayWithinTheirBound) {
  Sunk run(GetParam(), 2);
  const LayerSpec &spec = run.layers[0];
  RequestStyle style = run.style();
  const auto addMeans = style.adjust;
  style.adjust = [&](int64_t position, TokenValues &token) {
    addMeans(position, token);
    std::fill(token.gate.begin(), token.gate.end(), -3.0f);
  };
  // The same tokens twice: one request is measured from the beginning, of the
  // other every compression alone.
  DrivenRequest whole = run.request(6, style), single = run.request(6, style);
  const std::vector<float> gate(size_t(spec.gateFloats()), -3.0f);
  Doubles growth(size_t(spec.heads)), largest(size_t(spec.heads));
  for (int64_t head = 0; head < spec.heads; ++head) {
    double decay = -HUGE_VAL;
    for (double each :
         reference::logDecay(spec, head, gate.data(),
                             run.driver.weights(0).aLog.data(),
                             run.driver.weights(0).dtBias.data()))
      decay = std::max(decay, each);
    growth[size_t(head)] = std::exp(decay * spec.buffer);
  }
  for (int step = 0; step < 4096; ++step) {
    const bool compacts = run.compactsNext(single, 0);
    if (compacts)
      run.driver.rebase(single, 0);
    run.driver.step({&whole, &single});
    if (!compacts)
      continue;
    const Doubles one = errorsOf(run, single), all = errorsOf(run, whole);
    for (size_t head = 0; head < one.size(); ++head) {
      largest[head] = std::max(largest[head], one[head]);
      ASSERT_LE(all[head], largest[head] / (1 - growth[head]) * 1.001 + 1e-5)
          << "head " << head << ", token " << step;
    }
  }
  for (double each : largest)
    EXPECT_GT(each, 1e-3) << "a test of nothing";
}

INSTANTIATE_TEST_SUITE_P(Conformance, OpenLoop,
                         onEveryBackEnd({"gdn_sink", "mamba2_sink", "kda_sink"}),
                         caseName);

} // namespace
