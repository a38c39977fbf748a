//===- Layers.cpp - The parts of a layer, one token of a batch ------------===//

#include "Layers.h"

#include <algorithm>
#include <cmath>

using namespace tiny_hybrid;

void tiny_hybrid::project(const Matrix &x, const Matrix &weight, int threads,
                          Matrix &out) {
  const Eigen::Index outputs = weight.rows();
  out.resize(x.rows(), outputs);
  // Whole groups of 16 outputs keep the stores of a thread in its own lines.
  const Eigen::Index groups = (outputs + 15) / 16;
  const int parts =
      static_cast<int>(std::min<Eigen::Index>(std::max(threads, 1), groups));
#pragma omp parallel for num_threads(parts) schedule(static) if (parts > 1)
  for (int part = 0; part < parts; ++part) {
    Eigen::Index begin = groups * part / parts * 16;
    Eigen::Index end = std::min(groups * (part + 1) / parts * 16, outputs);
    out.middleCols(begin, end - begin).noalias() =
        x * weight.middleRows(begin, end - begin).transpose();
  }
}

void tiny_hybrid::rmsNorm(const Matrix &x, const Vector &weight, double epsilon,
                          Matrix &out) {
  const size_t size = weight.size();
  out.resize(x.rows(), x.cols());
  for (Eigen::Index run = 0; run < x.size() / Eigen::Index(size); ++run) {
    const float *source = x.data() + run * size;
    float *target = out.data() + run * size;
    double squares = 0;
    for (size_t i = 0; i < size; ++i)
      squares += static_cast<double>(source[i]) * source[i];
    float scale = static_cast<float>(1 / std::sqrt(squares / size + epsilon));
    for (size_t i = 0; i < size; ++i)
      target[i] = source[i] * scale * weight[i];
  }
}

float tiny_hybrid::sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float tiny_hybrid::silu(float x) { return x * sigmoid(x); }

//===----------------------------------------------------------------------===//
// CausalConvolution
//===----------------------------------------------------------------------===//

CausalConvolution::CausalConvolution(const Matrix &filter, int batch)
    : filter(filter),
      past(Matrix::Zero(batch, filter.rows() * (filter.cols() - 1))) {}

void CausalConvolution::apply(Matrix &x) {
  const Eigen::Index width = filter.cols(), kept = width - 1;
  for (Eigen::Index request = 0; request < x.rows(); ++request)
    for (Eigen::Index channel = 0; channel < x.cols(); ++channel) {
      float *seen = past.data() + request * past.cols() + channel * kept;
      const float newest = x(request, channel);
      float sum = newest * filter(channel, kept);
      for (Eigen::Index i = 0; i < kept; ++i)
        sum += seen[i] * filter(channel, i);
      for (Eigen::Index i = 0; i + 1 < kept; ++i)
        seen[i] = seen[i + 1];
      if (kept > 0)
        seen[kept - 1] = newest;
      x(request, channel) = silu(sum);
    }
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

Attention::Attention(const AttentionSizes &sizes,
                     const AttentionWeights &weights, int batch, int threads)
    : sizes(sizes), weights(weights), threads(threads), keys(batch),
      values(batch) {
  for (int pair = 0; pair < sizes.headDim / 2; ++pair)
    frequencies.push_back(
        std::pow(sizes.ropeTheta, -2.0 * pair / sizes.headDim));
}

/// The rotary embedding: pairs are (i, i + head_dim / 2).
void Attention::rotate(Matrix &x, int position) const {
  const int half = sizes.headDim / 2;
  for (int pair = 0; pair < half; ++pair) {
    const double angle = position * frequencies[pair];
    const float cosine = static_cast<float>(std::cos(angle));
    const float sine = static_cast<float>(std::sin(angle));
    for (Eigen::Index request = 0; request < x.rows(); ++request)
      for (int head = 0; head < sizes.heads; ++head) {
        float &first = x(request, head * sizes.headDim + pair);
        float &second = x(request, head * sizes.headDim + half + pair);
        const float rotated = first * cosine - second * sine;
        second = second * cosine + first * sine;
        first = rotated;
      }
  }
}

void Attention::attend(int request, int head, int length) {
  const int dim = sizes.headDim, stride = sizes.heads * dim;
  using Strided = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  const Strided seenKeys(keys[request].data() + head * dim, length, dim,
                         Eigen::OuterStride<>(stride));
  const Strided seenValues(values[request].data() + head * dim, length, dim,
                           Eigen::OuterStride<>(stride));
  Eigen::VectorXf scores =
      seenKeys * q.row(request).segment(head * dim, dim).transpose();
  scores *= static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
  scores = (scores.array() - scores.maxCoeff()).exp();
  scores /= scores.sum();
  mixed.row(request).segment(head * dim, dim).noalias() =
      scores.transpose() * seenValues;
}

void Attention::apply(const Matrix &x, int position, Matrix &out) {
  project(x, weights.q, threads, q);
  project(x, weights.k, threads, k);
  project(x, weights.v, threads, v);
  rotate(q, position);
  rotate(k, position);
  mixed.resize(x.rows(), q.cols());
  const int batch = static_cast<int>(x.rows());
  for (int request = 0; request < batch; ++request) {
    const float *key = k.data() + request * k.cols();
    const float *value = v.data() + request * v.cols();
    keys[request].insert(keys[request].end(), key, key + k.cols());
    values[request].insert(values[request].end(), value, value + v.cols());
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int task = 0; task < batch * sizes.heads; ++task)
    attend(task / sizes.heads, task % sizes.heads, position + 1);
  project(mixed, weights.output, threads, out);
}

//===----------------------------------------------------------------------===//
// Mlp
//===----------------------------------------------------------------------===//

void Mlp::apply(const Matrix &x, Matrix &out) {
  project(x, weights.mlpGate, threads, gate);
  project(x, weights.mlpUp, threads, up);
  for (Eigen::Index i = 0; i < gate.size(); ++i)
    gate.data()[i] = silu(gate.data()[i]) * up.data()[i];
  project(gate, weights.mlpDown, threads, out);
}
