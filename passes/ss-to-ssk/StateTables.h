//===- StateTables.h - where a program finds its state ----------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// The tables of docs/interfaces.md section 3 as kernel arguments, and the
// address arithmetic on them. Every offset is of type index: 64 bits.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_STATETABLES_H
#define SINKSTATE_PASSES_SSTOSSK_STATETABLES_H

#include "KernelBuilder.h"
#include "LayerShape.h"
#include "llvm/ADT/StringMap.h"

namespace sinkstate {

/// The arguments of a kernel by name, in the order of its signature.
class KernelArguments {
public:
  struct Argument {
    llvm::StringRef name;
    mlir::Type type;
  };

  /// The tables every kernel on factored states takes.
  static llvm::SmallVector<Argument> tables(const LayerShape &shape,
                                            mlir::MLIRContext *context);
  static llvm::SmallVector<Argument> decode(const LayerShape &shape,
                                            mlir::MLIRContext *context);
  static llvm::SmallVector<Argument> compact(const LayerShape &shape,
                                             mlir::MLIRContext *context);
  static llvm::SmallVector<Argument> densify(const LayerShape &shape,
                                             mlir::MLIRContext *context);
  static llvm::SmallVector<Argument> init(const LayerShape &shape,
                                          mlir::MLIRContext *context);

  KernelArguments(llvm::ArrayRef<Argument> signature,
                  mlir::ValueRange blockArguments);
  mlir::Value operator[](llvm::StringRef name) const;

private:
  llvm::StringMap<mlir::Value> values;
};

/// Rounds what is stored in the layer's storage stochastically: up with the
/// probability of the part that is lost, so that the mean is exact.
///
/// The random bits are a function of the request's key, the position of the
/// newest token, the layer, the head, the row and the element, and of nothing
/// else: a request has the same bits in any slot, batch and back end.
class StochasticRounding {
public:
  /// `key`: i64, what is common to all rows of the state.
  StochasticRounding(KernelBuilder &k, ss::Storage storage, mlir::Value key);

  /// Mixes a request's key, a position, the layer's number and a head (i64 but
  /// for the layer, i32, and the head, index) into one key.
  static mlir::Value mixKey(KernelBuilder &k, mlir::Value request,
                            mlir::Value position, mlir::Value layer,
                            mlir::Value head);

  /// The tile with every element a number of the storage. `row` (index) is the
  /// number of the tile's first row, `column` that of its first element.
  mlir::Value round(mlir::Value tile, mlir::Value row, int64_t column);

private:
  mlir::Value keyOfRow(mlir::Value row);
  mlir::Value roundElement(mlir::Value x, mlir::Value random);

  KernelBuilder &k;
  int lostBits;    ///< of an f32's fraction
  double smallest; ///< normal number of the storage; 0: that of f32
  double scale;    ///< that elements are stored times
  mlir::Value low, high; ///< halves of the key
};

/// One state of the program at hand: its numbers and the offsets of its parts.
class StateTables {
public:
  StateTables(KernelBuilder &k, const LayerShape &shape,
              const KernelArguments &arguments)
      : k(k), shape(shape), arguments(arguments) {}

  /// Addresses the state of `head` in `slot` (both index).
  void locate(mlir::Value slot, mlir::Value head);
  /// Addresses a state by its number, slot * heads + head.
  void locateState(mlir::Value state);
  /// Reads base, rank and count, which decode of a padded row must not touch.
  /// `ahead`: pairs in the buffer that `count` does not tell of yet, or null.
  void readExtent(mlir::Value ahead = {});
  /// The same for a deferred state, which has neither base nor rank. A full
  /// buffer is folded first: `count` is what is left, `isFull` says so. The keys
  /// have two halves in turn, as other heads may still read the full one.
  void readPairs();

  /// Offset of element `column` of component i's row [v | u].
  mlir::Value row(mlir::Value i, int64_t column);
  /// The array of dense states, and the offset of row c (column c of H) there.
  mlir::Value denseRows() const {
    return arguments[shape.isDeferred() ? "dense" : "rows"];
  }
  mlir::Value denseRow(mlir::Value c);
  mlir::Value bufferK(mlir::Value j);
  /// bufferK of a full buffer's pair, of a deferred state.
  mlir::Value fullBufferK(mlir::Value j);
  mlir::Value bufferU(mlir::Value j);
  mlir::Value bufferG(mlir::Value j);

  /// Reads what the rounding of this state's rows depends on; nothing where the
  /// layer rounds to nearest. `ahead` as in readExtent().
  void readRounding(mlir::Value ahead = {});
  /// Stores elements of rows to `memory`, rounded as the layer says: the tile's
  /// rows are rows `row` (index) and following, its first element their element
  /// `column`.
  void storeRounded(mlir::Value tile, mlir::Value memory, mlir::Value at,
                    mlir::Value row, int64_t column, mlir::Value stride = {},
                    mlir::Value limit = {});
  /// The same to component i's row [v | u] and those behind it.
  void storeRow(mlir::Value tile, mlir::Value i, int64_t column,
                mlir::Value stride = {}, mlir::Value limit = {});

  /// The running log-decay of the last pair, 0 when the buffer is empty: a
  /// scalar, or a tile over the key channels.
  mlir::Value runningDecay();
  mlir::Type keyTile() { return k.lanes({shape.dk}); }
  mlir::Type valueTile() { return k.lanes({shape.dv}); }

private:
  void locateKeyHead();
  mlir::Value keyAt(mlir::Value pair);

public:
  KernelBuilder &k;
  const LayerShape &shape;
  const KernelArguments &arguments;
  mlir::Value slot, head, state, keyHead;
  mlir::Value base;     ///< first row in the pool
  mlir::Value rank;     ///< components as index; meaningless when dense
  mlir::Value isDense;  ///< i1
  mlir::Value count;    ///< buffered pairs, index
  // Of deferred states: i1, and the halves of the buffer of keys, index.
  mlir::Value isFull, fullHalf, half;

private:
  mlir::Value roundingKey; ///< null: to nearest
};

/// The body of a kernel over a list of states: `body` gets the program's number
/// and its state, and runs where the list is that long. The list may be made on
/// the device: its length is read there.
void overWork(KernelBuilder &k, const KernelArguments &arguments,
              llvm::function_ref<void(mlir::Value program, mlir::Value state)>
                  body);

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_STATETABLES_H
