//===- KernelPrinter.h - Prints one kernel ----------------------*- C++ -*-===//
//
// The printer behind CudaPrinter.h. Its methods are spread over files by
// concern: KernelPrinter.cpp (signature, control flow), CudaScalars.cpp,
// CudaMemoryOps.cpp, CudaComputeOps.cpp. Operations find theirs through an interface
// (CudaStatement.h).
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_CUDA_KERNELPRINTER_H
#define SINKSTATE_CODEGEN_CUDA_KERNELPRINTER_H

#include "codegen/common/CppExpr.h"
#include "codegen/common/TextWriter.h"
#include "codegen/common/VariablePlan.h"
#include "codegen/cuda/CudaPrinter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace sinkstate::cuda {

/// Names that the printed text uses itself.
const llvm::StringSet<> &getReservedNames();

/// The device headers that a kernel's operations need, sorted.
std::vector<std::string> getDeviceHeaders(ssk::KernelOp kernel);

class KernelPrinter {
public:
  KernelPrinter(ssk::KernelOp kernel, const CudaPrintOptions &options);

  /// The text of the kernel, from its banner to the closing brace.
  std::string print();

  // What operations print through CudaStatement: control flow (KernelPrinter.cpp), parts
  // (CudaParts.cpp), memory (CudaMemoryOps.cpp), arithmetic (CudaComputeOps.cpp).
  void print(mlir::scf::ForOp loop);
  void print(mlir::scf::IfOp branch);
  void print(ssk::PartsOp parts);
  void print(ssk::SyncOp sync);
  void print(ssk::ReadOp read);
  void print(ssk::LoadOp load);
  void print(ssk::StoreOp store);
  void print(ssk::CopyOp copy);
  void print(ssk::WaitCopiesOp wait);
  void print(ssk::FillOp fill);
  /// And all writes that follow it.
  void print(ssk::WriteOp first);
  void print(ssk::SplatOp splat);
  void print(ssk::IotaOp iota);
  void print(ssk::MapOp map);
  void print(ssk::ReduceOp reduce);
  void print(ssk::DotOp dot);
  void print(ssk::AccumulateOp accumulate);
  void print(ssk::MatmulOp matmul);
  void print(ssk::TopKOp top);
  void print(ssk::CallOp call);

private:
  // Signature and frame (KernelPrinter.cpp).
  void printBanner();
  void printScratch();
  void printSignature();
  void printBounds(int64_t warps, int64_t minBlocks);
  void printEntries();
  void printParameters(const llvm::Twine &name);
  void printPrologue();
  void printScratchOfProgram(int64_t perBlock);
  mlir::BlockArgument getWorkCount();
  void openProgramLoop(llvm::StringRef first, int64_t perBlock);

  // Around statements (KernelPrinter.cpp, those of parts: CudaParts.cpp).
  void printBlock(mlir::Block &block, bool isTail);
  mlir::Operation *getPreviousStatement(mlir::Operation *op) const;
  void printNote(mlir::Operation &op);
  void printStatement(mlir::Operation &op);
  void printIteration(mlir::scf::ForOp loop);
  bool isConditional(mlir::scf::IfOp branch) const;
  bool printsAnything(mlir::scf::IfOp branch, mlir::Region &side) const;
  bool isLoopBound(mlir::Value condition);
  bool isWritten(mlir::Value memory);
  bool isReadAtOnce(ssk::LoadOp load);
  void printTailBranch(mlir::scf::IfOp branch);
  void printKept(ssk::PartsOp parts, mlir::ValueRange tiles, llvm::StringRef isFirst);
  void printSync();
  bool readsVariable(mlir::Value value, mlir::Value target) const;
  void printYields(mlir::ValueRange targets, mlir::ValueRange yielded);
  void declareCarried(mlir::Value target, mlir::Value init);

  // Scalars (CudaScalars.cpp).
  codegen::CppExpr getExpr(mlir::Value value) const;
  std::string getText(mlir::Value value) const { return getExpr(value).text; }
  std::string getNegation(mlir::Value condition) const;
  std::string getSubscripts(mlir::ValueRange indices) const;
  std::string getElement(mlir::Value memory, mlir::ValueRange indices) const;
  void printScalar(mlir::Value result);
  void assignScalar(mlir::Value result, llvm::StringRef text);
  void printAssignment(mlir::Value target, mlir::Value value);
  bool printUpdate(mlir::Value target, mlir::Operation *op);

  // Tiles and memory (CudaMemoryOps.cpp, CudaComputeOps.cpp).
  llvm::StringRef getName(mlir::Value value) const { return plan.lookup(value).name; }
  void declareTile(mlir::Value tile, llvm::StringRef initializer = {});
  bool isGuarded(mlir::Operation *op, mlir::Value memory) const;
  void printMapBody(ssk::MapOp map, llvm::ArrayRef<llvm::StringRef> indices, unsigned depth);
  void printTileCall(mlir::Value result, llvm::StringRef function, llvm::StringRef arguments);

  ssk::KernelOp kernel;
  const CudaPrintOptions &options;
  codegen::ExpressionForming forming;
  codegen::VariablePlan plan;
  codegen::TextWriter out;
  CudaKernelInfo info;
  ssk::PartsOp parts; ///< of the kernel, or null
  /// An independent loop whose iterations are the tasks of the loop over programs,
  /// or null.
  mlir::scf::ForOp spread;
  llvm::StringRef lastNote;
  /// The element that an argument of the map being printed stands for.
  llvm::DenseMap<mlir::Value, std::string> elements;
};

} // namespace sinkstate::cuda

#endif // SINKSTATE_CODEGEN_CUDA_KERNELPRINTER_H
