// The mathematics of docs/state-math.md for one head in double precision, to
// compare kernels against. Written for clarity: decays are folded into the
// factors at once, and every state is a value that can be copied.
#ifndef SINKSTATE_TEST_NUMERICS_REFERENCE_H
#define SINKSTATE_TEST_NUMERICS_REFERENCE_H

#include <Eigen/Dense>

#include <vector>

namespace sinkstate::numerics {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

// --- What happens to a token's inputs before they reach the state ---------

double softplus(double x); ///< x itself above 20
double sigmoid(double x);

enum class Gate { softplus, softplusChannel, boundedChannel };

/// Log-decays, one per element of `gate` (a head's scalar, or its channels).
/// `bound` is used by boundedChannel alone.
Vector logDecay(Gate kind, const Vector &gate, double aLog,
                const Vector &dtBias, double bound = -5);

enum class Norm { none, add, max };

/// none: x; add: x / sqrt(sum x^2 + eps); max: x / max(|x|, eps); times scale.
Vector normalize(Norm kind, const Vector &x, double eps, double scale = 1);

// --- States -----------------------------------------------------------------

/// One token of one head, after the transformations above.
struct Token {
  Vector q, k, v;
  Vector alpha;      ///< decay per key channel [dk], exp of the log-decay
  double weight = 1; ///< beta, or the time step of mamba2
  int theta = 0;     ///< 1: delta rule
};

/// H itself, [dv, dk].
class DenseState {
public:
  DenseState(int dv, int dk) : h(Matrix::Zero(dv, dk)) {}
  Vector step(const Token &token);

  Matrix h;
};

/// How components are dropped at a compaction.
struct Policy {
  enum Kind { relative, fixed, energy } kind = relative;
  double value = 0; ///< eps, rank, or share of the sum of squares
};

/// How a compaction decomposes: singular values, or two pivoted QRs, right and
/// then left, which leave only the left sides orthonormal.
enum class Core { svd, qr };

/// What a compaction did.
struct Compaction {
  Matrix core;           ///< R_L S_c R_R^T; empty for qr
  Vector coreWeights;    ///< its singular values; for qr the new weights
  Vector droppedWeights; ///< of all components, active and frozen
  double bound() const { return droppedWeights.sum(); }
};

/// Components of weight below this share of the largest count as zero.
constexpr double numericallyZero = 0x1p-22;

/// sum of s_i u_i v_i^T over the components and of c_j u_j k_j^T over the
/// buffer.
class FactoredState {
public:
  FactoredState(int dv, int dk, int active)
      : u(dv, 0), v(dk, 0), s(0), bufferU(dv, 0), bufferK(dk, 0), bufferC(0),
        active(active) {}

  /// Decays, appends the pair of the token and reads out. Never compacts.
  Vector step(const Token &token);
  void decay(const Vector &alpha);
  void append(const Vector &uRow, const Vector &k, double c = 1);
  Vector readout(const Vector &q) const;

  /// Folds the buffer into the active components and truncates.
  Compaction compact(const Policy &policy, Core core = Core::svd);
  /// Exact SVD of the frozen part; drops below eps times the largest weight of
  /// the state. Returns the sum of the dropped weights.
  double consolidate(double eps);

  Matrix dense() const; ///< H [dv, dk]
  int rank() const { return int(s.size()); }
  int buffered() const { return int(bufferC.size()); }
  int dv() const { return int(u.rows()); }
  int dk() const { return int(v.rows()); }

  Matrix u, v; ///< components are columns
  Vector s;
  Matrix bufferU, bufferK;
  Vector bufferC;
  int active; ///< size of the active set

private:
  void foldNorms();
  void sortByWeight();
  void replace(const Matrix &newU, const Matrix &newV, const Vector &newS);
  Vector truncate(const Policy &policy);
};

/// |Q^T Q - I|_max of the columns.
double orthogonalityError(const Matrix &columns);

} // namespace sinkstate::numerics
#endif
