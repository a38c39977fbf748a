//===- KernelPrinter.h - Prints one kernel ----------------------*- C++ -*-===//
//
// The printer behind CudaPrinter.h. Its methods are spread over files by
// concern: KernelPrinter.cpp (signature, control flow), CudaScalars.cpp,
// CudaMemoryOps.cpp, CudaComputeOps.cpp.
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

  // Statements (KernelPrinter.cpp, those of parts: CudaParts.cpp).
  void printBlock(mlir::Block &block, bool isTail);
  mlir::Operation *getPreviousStatement(mlir::Operation *op) const;
  void printNote(mlir::Operation &op);
  void printStatement(mlir::Operation &op);
  void printFor(mlir::scf::ForOp loop);
  void printIteration(mlir::scf::ForOp loop);
  bool isConditional(mlir::scf::IfOp branch) const;
  void printIf(mlir::scf::IfOp branch);
  bool printsAnything(mlir::scf::IfOp branch, mlir::Region &side) const;
  bool isLoopBound(mlir::Value condition);
  void printTailBranch(mlir::scf::IfOp branch);
  void printParts(ssk::PartsOp parts);
  void printKept(ssk::PartsOp parts, mlir::ValueRange tiles, llvm::StringRef isFirst);
  bool isGuarded(mlir::Operation *op, mlir::Value memory) const;
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

  // Tiles (CudaMemoryOps.cpp, CudaComputeOps.cpp).
  llvm::StringRef getName(mlir::Value value) const { return plan.lookup(value).name; }
  void declareTile(mlir::Value tile, llvm::StringRef initializer = {});
  void printLoad(ssk::LoadOp load);
  void printStore(ssk::StoreOp store);
  void printCopy(ssk::CopyOp copy);
  void printWrites(ssk::WriteOp first);
  void printSplat(ssk::SplatOp splat);
  void printIota(ssk::IotaOp iota);
  void printMap(ssk::MapOp map);
  void printMapBody(ssk::MapOp map, llvm::ArrayRef<llvm::StringRef> indices, unsigned depth);
  void printReduce(ssk::ReduceOp reduce);
  void printDot(ssk::DotOp dot);
  void printAccumulate(ssk::AccumulateOp accumulate);
  void printMatmul(ssk::MatmulOp matmul);
  void printCall(ssk::CallOp call);
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
