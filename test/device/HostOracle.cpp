//===- HostOracle.cpp - The oracle where the GPU is a fake ----------------===//
//
// Eigen in place of cuSOLVER, and the CPU twins of the routines: what tests the
// tests has no GPU to ask.
//
//===----------------------------------------------------------------------===//

#include "Matrices.h"
#include "SvdOracle.h"

#include "numeric/Elements.h"
#include "sinkstate/cpu_routines.h"

#include <Eigen/SVD>

namespace sinkstate::test {
namespace {

class HostOracle final : public SvdOracle {
public:
  std::vector<double> singularValues(std::vector<double> matrices, int rows,
                                     int columns) override {
    const size_t floats = size_t(rows) * size_t(columns);
    std::vector<double> sigma;
    for (size_t i = 0; i < matrices.size(); i += floats) {
      const Matrix one =
          Eigen::Map<const Matrix>(&matrices[i], rows, columns);
      const Vector values = Eigen::JacobiSVD<Matrix>(one).singularValues();
      sigma.insert(sigma.end(), values.begin(), values.end());
    }
    return sigma;
  }
};

class HostRoutines final : public RoutineRunner {
public:
  std::vector<int32_t> coreSvd(int m, std::vector<double> c,
                               std::vector<double> &xt,
                               std::vector<double> &sigma,
                               std::vector<double> &yt) override {
    xt.assign(c.size(), 0);
    yt.assign(c.size(), 0);
    sigma.assign(c.size() / size_t(m), 0);
    std::vector<int32_t> status;
    const size_t step = size_t(m * m);
    for (size_t i = 0; i < c.size() / step; ++i)
      status.push_back(ss_cpu_routines()->ss_core_svd(
          m, &c[i * step], &xt[i * step], &sigma[i * size_t(m)],
          &yt[i * step]));
    return status;
  }

  std::vector<int32_t> orthogonalize(int m, std::vector<double> &gram,
                                     std::vector<double> &t) override {
    t.assign(gram.size(), 0);
    std::vector<int32_t> status;
    for (size_t i = 0; i < gram.size(); i += size_t(m * m))
      status.push_back(ss_cpu_routines()->ss_orthogonalize(m, &gram[i], &t[i]));
    return status;
  }

  std::vector<int32_t> gramSvd(int m, double share,
                               const std::vector<float> &matrices,
                               std::vector<float> &vectors,
                               std::vector<double> &sigma) override {
    const size_t step = size_t(m) * size_t(m);
    std::vector<int32_t> status;
    std::vector<double> values(static_cast<size_t>(m)),
        room(size_t(m + SS_GRAM_ROOM));
    for (size_t i = 0; i < matrices.size(); i += step) {
      std::vector<float> chunk(&matrices[i], &matrices[i] + step),
          memory(step + size_t(m));
      ss_cpu_routines()->ss_add_gram(m, m, 0, 1, chunk.data(), memory.data());
      status.push_back(ss_cpu_routines()->ss_gram_svd(
          m, memory.data(), values.data(), room.data(), share));
      vectors.insert(vectors.end(), memory.begin(), memory.begin() + long(step));
      sigma.insert(sigma.end(), values.begin(), values.end());
    }
    return status;
  }

  std::vector<float> widen(const std::string &type,
                           const std::vector<uint32_t> &registers) override {
    using numeric::ElementType;
    const ElementType element = type == "half"       ? ElementType::F16
                                : type == "bfloat16" ? ElementType::BF16
                                                     : ElementType::FP8;
    std::vector<float> wide(registers.size() * (type == "float8" ? 4 : 2));
    numeric::loadElements(element, wide.data(), registers.data(),
                          int64_t(wide.size()));
    if (element == ElementType::FP8) // which the runtime scales: undone, exactly
      for (float &x : wide)
        x *= numeric::ScaledE4M3::kScale;
    return wide;
  }
};

} // namespace

std::unique_ptr<SvdOracle> SvdOracle::open(std::string &) {
  return std::make_unique<HostOracle>();
}

std::unique_ptr<RoutineRunner> RoutineRunner::open(std::string &) {
  return std::make_unique<HostRoutines>();
}

} // namespace sinkstate::test
