//===- SvdOracle.h - Who says what a singular value is ----------*- C++ -*-===//
//
// A second opinion on every decomposition of a GPU: cuSOLVER on a real one, the
// host's Eigen where the tests themselves are tested on the fake one.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DEVICE_SVDORACLE_H
#define SINKSTATE_DEVICE_SVDORACLE_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sinkstate::test {

class SvdOracle {
public:
  virtual ~SvdOracle() = default;
  /// The singular values of row-major matrices that follow each other, in
  /// descending order: min(rows, columns) a matrix. Throws where one does not
  /// converge.
  virtual std::vector<double> singularValues(std::vector<double> matrices,
                                             int rows, int columns) = 0;

  /// Null where there is none; `reason` then says what was looked for.
  static std::unique_ptr<SvdOracle> open(std::string &reason);
};

/// Runs routines of the device library on many m x m matrices at once; arrays
/// and status bits as in docs/interfaces.md, matrix after matrix.
class RoutineRunner {
public:
  virtual ~RoutineRunner() = default;
  virtual std::vector<int32_t> coreSvd(int m, std::vector<double> c,
                                       std::vector<double> &xt,
                                       std::vector<double> &sigma,
                                       std::vector<double> &yt) = 0;
  virtual std::vector<int32_t> orthogonalize(int m, std::vector<double> &gram,
                                             std::vector<double> &t) = 0;
  /// Of matrices [m, m] f32, by their Gram matrices (ss_add_gram, ss_gram_svd):
  /// left vectors, a row each, and singular values; those below `share` of the
  /// largest may be zero.
  virtual std::vector<int32_t> gramSvd(int m, double share,
                                       const std::vector<float> &matrices,
                                       std::vector<float> &vectors,
                                       std::vector<double> &sigma) = 0;
  /// The numbers in whole registers of `type` (half, bfloat16 or float8), as f32.
  virtual std::vector<float> widen(const std::string &type,
                                   const std::vector<uint32_t> &registers) = 0;

  /// Null where nothing can be compiled; `reason` then says why.
  static std::unique_ptr<RoutineRunner> open(std::string &reason);
};

} // namespace sinkstate::test

#endif
