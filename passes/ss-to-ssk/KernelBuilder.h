//===- KernelBuilder.h - a short hand for writing ssk kernels --*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// The lowerings of ss operations write a few hundred ssk, scf and arith
// operations each. This builder keeps them readable: index arithmetic without
// locations, loops and branches as lambdas, and a current note that becomes the
// comment of the printed kernel.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_KERNELBUILDER_H
#define SINKSTATE_PASSES_SSTOSSK_KERNELBUILDER_H

#include "dialect/ssk/SSKDialect.h"
#include "mlir/IR/Builders.h"

namespace sinkstate {

/// What 8-bit floats are stored times. The elements of rows of unit length then
/// lie in the middle of the format's exponents: none is beyond 448, and a row's
/// weight is its only scale.
constexpr double kByteScale = 256;

class KernelBuilder {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  using Dims = llvm::ArrayRef<llvm::SmallVector<int64_t>>;
  using MapBody = llvm::function_ref<mlir::Value(mlir::ValueRange)>;
  using LoopBody =
      llvm::function_ref<Values(mlir::Value iv, mlir::ValueRange carried)>;

  /// `kernel` holds the scratch; `builder` stands in its body.
  KernelBuilder(mlir::OpBuilder &builder, ssk::KernelOp kernel,
                mlir::Location source)
      : b(builder), kernel(kernel), source(source), loc(source) {}

  /// What the following operations do; the CUDA printer prints it once as a
  /// comment above them.
  void note(llvm::StringRef text);

  /// Calls a value by a name, which its variable has in the printed kernel; what
  /// has none may be printed inside the expression that uses it.
  mlir::Value name(llvm::StringRef text, mlir::Value value);

  // Types. `lanes` spreads the last dimension over the lanes of a warp.
  mlir::Type lanes(llvm::ArrayRef<int64_t> shape, mlir::Type element = {});
  /// The first dimension of two over the lanes.
  mlir::Type lanesOfRows(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Type replicated(llvm::ArrayRef<int64_t> shape, mlir::Type element = {});
  mlir::Value shared(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Type f32() { return b.getF32Type(); }
  mlir::Type f64() { return b.getF64Type(); }
  mlir::Type i32() { return b.getI32Type(); }

  // Scalars.
  mlir::Value index(int64_t value);
  mlir::Value real(double value); ///< f32
  mlir::Value wide(double value); ///< f64
  /// f32, printed with that name (SSKNames.h).
  mlir::Value constant(llvm::StringRef called, double value);
  mlir::Value integer(int32_t value);
  mlir::Value toIndex(mlir::Value i);
  mlir::Value toI32(mlir::Value i);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value rem(mlir::Value x, mlir::Value y);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value neg(mlir::Value x);
  mlir::Value exp(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  /// log(1 + exp(x)), x itself above 20.
  mlir::Value softplus(mlir::Value x);
  /// 1 / (1 + exp(-x)); saturates without overflow for x below -88.
  mlir::Value sigmoid(mlir::Value x);
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value c, mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y); ///< signed; ordered for floats
  mlir::Value atLeast(mlir::Value x, mlir::Value y);
  mlir::Value equal(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value either(mlir::Value x, mlir::Value y);
  mlir::Value bitAnd(mlir::Value x, mlir::Value y);
  mlir::Value bitOr(mlir::Value x, mlir::Value y);
  mlir::Value bitXor(mlir::Value x, mlir::Value y);
  mlir::Value shiftRight(mlir::Value x, int64_t bits); ///< unsigned
  mlir::Value bitcast(mlir::Type type, mlir::Value x);
  mlir::Value integer64(uint64_t bits);
  mlir::Value lowHalf(mlir::Value i);  ///< of an i64, i32
  mlir::Value highHalf(mlir::Value i); ///< of an i64, i32
  mlir::Value toI64(mlir::Value i);          ///< from index
  mlir::Value extend(mlir::Value x); ///< f32 to f64
  mlir::Value narrow(mlir::Value x); ///< f64 to f32, to nearest

  // Memory.
  mlir::Value programId() { return ssk::ProgramIdOp::create(b, source); }
  mlir::Value nextProgram() { return ssk::NextProgramOp::create(b, source); }
  /// Asks for `count` elements of an array that will be wanted soon.
  void prefetch(mlir::Value global, mlir::Value offset, int64_t count) {
    ssk::PrefetchOp::create(b, loc, global, offset, count);
  }
  mlir::Value read(mlir::Value ref, mlir::ValueRange at);
  void write(mlir::Value x, mlir::Value ref, mlir::ValueRange at);
  // Memory of 16-bit floats is read as f32 and written from it, to nearest, ties
  // to even: a tile of f32 is converted on its way. Memory of 8-bit floats holds
  // rows of unit length, scaled by kByteScale.
  mlir::Value load(mlir::Type tile, mlir::Value ref, mlir::ValueRange at,
                   mlir::Value stride = {}, mlir::Value limit = {});
  /// The same without undoing the scale of 8-bit floats; scaleOf() has it.
  mlir::Value loadScaled(mlir::Type tile, mlir::Value ref, mlir::ValueRange at,
                         mlir::Value stride = {}, mlir::Value limit = {});
  /// What elements of this memory are stored times: 1, or kByteScale.
  static double scaleOf(mlir::Value ref);
  void store(mlir::Value tile, mlir::Value ref, mlir::ValueRange at,
             mlir::Value stride = {}, mlir::Value limit = {});
  /// Starts to copy a row of scratch (all of it, for a null row) from `offset` on;
  /// elements from `limit` on become 0. waitCopies() ends all of them. What has
  /// to be converted is loaded and stored at once.
  void copy(mlir::Value global, mlir::Value offset, mlir::Value scratch,
            mlir::Value row, mlir::Value limit = {});
  void waitCopies();

  // Tiles.
  mlir::Value splat(mlir::Type tile, mlir::Value scalar);
  /// Element i of a tile of one dimension is i, i32.
  mlir::Value iota(mlir::Type tile);
  mlir::Value map(mlir::Type tile, mlir::ValueRange inputs, Dims dims,
                  MapBody body);
  /// Elementwise map whose operands all cover every dimension.
  mlir::Value map(mlir::Type tile, mlir::ValueRange inputs, MapBody body);
  mlir::Value dot(mlir::Value a, mlir::Value x);
  mlir::Value accumulate(mlir::Value acc, mlir::Value coef, mlir::Value rows);
  mlir::Value reduceMax(mlir::Value tile);
  mlir::Value reduceAdd(mlir::Value tile, int64_t axis);
  void matmul(mlir::Value a, mlir::Value x, mlir::Value into, bool transposeA,
              bool transposeB);
  /// into += op(a) op(x).
  void addMatmul(mlir::Value a, mlir::Value x, mlir::Value into,
                 bool transposeA, bool transposeB, mlir::Value limit = {});
  /// The rows of op(a) op(x) before `limit`; what is behind is undefined.
  void matmulRows(mlir::Value a, mlir::Value x, mlir::Value into,
                  bool transposeA, bool transposeB, mlir::Value limit);
  void topK(mlir::Value weights, mlir::Value count, mlir::Value into);
  mlir::Value call(llvm::StringRef routine, mlir::ValueRange arguments,
                   llvm::ArrayRef<int64_t> reads,
                   llvm::ArrayRef<int64_t> writes);

  // Control flow, uniform over the program.
  Values loop(mlir::Value from, mlir::Value to, int64_t step,
              mlir::ValueRange carried, LoopBody body);
  void loop(mlir::Value from, mlir::Value to, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
  /// A loop from 0 to `to` whose iterations may run at the same time:
  /// SSKDialect::kIndependentAttr.
  void independentLoop(int64_t to, int64_t step,
                       llvm::function_ref<void(mlir::Value)> body);
  /// A loop over [0, to) whose iterations the warps of a program share out: they
  /// write places of their own and read nothing that the loop writes.
  void overWarps(mlir::Value to, llvm::function_ref<void(mlir::Value)> body);
  /// The sums over `count` parts of what `body` returns for each; the last part
  /// adds what `last` makes of it.
  Values parts(int64_t count, mlir::TypeRange sums,
               llvm::function_ref<Values(mlir::Value part)> body,
               llvm::function_ref<Values(mlir::ValueRange own)> last);
  Values choose(mlir::Value condition, llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);
  void branch(mlir::Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise = nullptr);

  mlir::OpBuilder &b;

private:
  ssk::KernelOp kernel;
  mlir::Location source;
  mlir::Location loc;
};

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_KERNELBUILDER_H
