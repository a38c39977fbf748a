//===- KernelArguments.h - Names a kernel may bind --------------*- C++ -*-===//
//
// Kernels name their arguments (docs/interfaces.md section 3) and the runtime
// binds them by name. The names are looked up once, when a package is loaded;
// a launch only follows small integers.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PACKAGE_KERNELARGUMENTS_H
#define SINKSTATE_PACKAGE_KERNELARGUMENTS_H

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sinkstate::runtime {

enum class KernelRole : uint8_t { Decode, Compact, Densify, Init };
const char *kernelRoleName(KernelRole role);

enum class Argument : uint8_t {
  Rows, Weights, RowBase, Rank, Status, Count, BufferK, BufferU, BufferG,
  Slots, Q, QStride, K, KStride, V, VStride, Gate, GateStride, Beta,
  BetaStride, ALog, DtBias, Y, YStride, Order, Ordered,
  Work, WorkCount, CountAhead, PolicyValue, MaxRank,
  RowCapacity, Out, OutBase, Factors, Matrices, MatrixBase, Seed, Dense,
  Positions, RequestKeys, Layer, FirstHead, Sink,
  Size
};

/// Where an argument has a meaning, as a set of bits.
enum ArgumentPlace : uint8_t {
  InFactoredDecode = 1,
  InCompact = 2,
  InDensify = 4,
  InDenseDecode = 8,
  InInit = 16,
  InDeferredDecode = 32
};

inline constexpr std::string_view kStoredType = "stored*";

struct ArgumentInfo {
  std::string_view name;
  std::string_view type; ///< kStoredType: a pointer to the layer's storage
  uint8_t places;
};
const ArgumentInfo &argumentInfo(Argument argument);
std::optional<Argument> argumentByName(std::string_view name);

/// The values of one launch. A kernel gets the addresses of those it binds.
class ArgumentValues {
public:
  /// Takes all memory it will ever need: binding allocates nothing.
  ArgumentValues() { bound.reserve(size_t(Argument::Size) + 1); }

  void setPointer(Argument a, const void *p) { at(a).pointer = p; }
  void setI64(Argument a, int64_t x) { at(a).i64 = x; }
  void setI32(Argument a, int32_t x) { at(a).i32 = x; }
  void setF32(Argument a, float x) { at(a).f32 = x; }

  /// Addresses of the values in the order of `order`; valid until the next
  /// call.
  const void *const *bind(std::span<const Argument> order);

  /// The same for a launch on a GPU, whose last parameter is the number of
  /// programs.
  void **bindLaunch(std::span<const Argument> order, int64_t programs);

private:
  union Value {
    const void *pointer;
    int64_t i64;
    int32_t i32;
    float f32;
  };
  Value &at(Argument a) { return values[size_t(a)]; }

  std::array<Value, size_t(Argument::Size)> values = {};
  std::vector<const void *> bound;
  int64_t launched = 0;
};

} // namespace sinkstate::runtime

#endif
