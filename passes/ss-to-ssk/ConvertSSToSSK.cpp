//===- ConvertSSToSSK.cpp - fused functions to kernels --------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "KernelTuning.h"
#include "Lowerings.h"
#include "dialect/ssk/SSKNames.h"
#include "dialect/ssk/SSKWarps.h"
#include "passes/ss-to-ssk/Passes.h"
#include "passes/ssk/ScratchLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

namespace sinkstate {
#define GEN_PASS_DEF_CONVERTSSTOSSKPASS
#include "passes/ss-to-ssk/Passes.h.inc"
} // namespace sinkstate

using namespace mlir;

namespace sinkstate {
namespace {

using Lower = LogicalResult (*)(ss::FusedOp, const LayerShape &,
                                const KernelArguments &, const KernelChoices &,
                                KernelBuilder &);

/// What a function's role asks for.
struct Role {
  Lower lower;
  SmallVector<KernelArguments::Argument> signature;
};

FailureOr<Role> getRole(func::FuncOp function, const LayerShape &shape) {
  StringRef role =
      function->getAttrOfType<StringAttr>("ss.role").getValue();
  MLIRContext *context = function.getContext();
  const bool factored = shape.isFactored();
  if (role == "decode")
    return Role{shape.isDense() ? lowerDenseDecode : lowerDecode,
                KernelArguments::decode(shape, context)};
  if (role == "compact" && factored)
    return Role{lowerCompact, KernelArguments::compact(shape, context)};
  if (role == "densify" && factored)
    return Role{lowerDensify, KernelArguments::densify(shape, context)};
  if (role == "init" && factored)
    return Role{lowerInit, KernelArguments::init(shape, context)};
  return function.emitError()
         << "role '" << role << "' of a " << stringifyEnum(shape.form)
         << " layer has no kernel; expected decode"
         << (factored ? ", compact, densify or init" : "");
}

/// The one fused region of the function.
FailureOr<ss::FusedOp> getFused(func::FuncOp function) {
  ss::FusedOp fused;
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto candidate = dyn_cast<ss::FusedOp>(op);
    if (!candidate || fused)
      return op.emitOpError("is not part of the one fused region that a kernel "
                            "is made from; run ss-fuse-decode and "
                            "ss-fuse-compaction first");
    fused = candidate;
  }
  if (!fused)
    return function.emitError("has no fused region to make a kernel from");
  return fused;
}

int64_t bytesOfScratch(ssk::KernelOp kernel) {
  int64_t bytes = 0;
  kernel.walk([&](ssk::AllocOp alloc) {
    auto type = cast<ssk::SharedType>(alloc.getResult().getType());
    bytes += type.getNumElements() *
             type.getElementType().getIntOrFloatBitWidth() / 8;
  });
  return bytes;
}

/// Shared memory of one program, as ssk-prepare will lay it out.
ssk::ScratchLayout measureScratch(ssk::KernelOp kernel) {
  OwningOpRef<ssk::KernelOp> copy = kernel.clone();
  return ssk::layOutScratch(*copy);
}

LogicalResult checkFits(ssk::KernelOp kernel, const LayerShape &shape) {
  const int64_t bytes = measureScratch(kernel).bytes;
  if (bytes <= ssk::kMostBlockBytes)
    return success();
  return kernel.emitError("a compaction of ")
         << shape.block() << " components of " << shape.dv << " x " << shape.dk
         << " (" << shape.active << " active and " << shape.capacity
         << " buffered ones) needs " << bytes
         << " bytes of a GPU's shared memory, expected at most "
         << ssk::kMostBlockBytes
         << ": make active or buffer smaller (of a fixed rank, the rank), or "
            "leave CUDA out (ss-compile --no-cuda)";
}

struct ConvertSSToSSK final
    : impl::ConvertSSToSSKPassBase<ConvertSSToSSK> {
  using Base::Base;

  void runOnOperation() override {
    if (rowsInFlight < 0 || programsPerBlock < 0) {
      getOperation().emitError("rows-in-flight and programs-per-block must be "
                               "at least 1, or 0 for what the device asks for, "
                               "found ")
          << int64_t(rowsInFlight) << " and " << int64_t(programsPerBlock);
      return signalPassFailure();
    }
    if (initWarps < 0 || initWarps > ssk::kMostWarps / 2) {
      getOperation().emitError("init-warps is ")
          << int64_t(initWarps) << ", expected 1 to " << ssk::kMostWarps / 2
          << ", or 0 for what the device asks for";
      return signalPassFailure();
    }
    if (!llvm::is_contained(getTunedDevices(), StringRef(device))) {
      getOperation().emitError("no choices are known for device '")
          << device << "'; expected " << llvm::join(getTunedDevices(), " or ");
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttrOfType<StringAttr>("ss.role"))
        functions.push_back(function);
    for (func::FuncOp function : functions)
      if (failed(convert(function)))
        return signalPassFailure();
  }

  /// The device's choices, or those of the options.
  KernelTuning tune(StringRef role, const LayerShape &shape) {
    KernelTuning tuning = getKernelTuning(device, role, shape);
    if (role == "init" && initWarps > 0 && initWarps != tuning.warps) {
      // As many threads as were asked to be resident, and blocks at most.
      const int64_t blocks = tuning.residentBlocks.value_or(1);
      tuning.residentBlocks =
          std::clamp<int64_t>(blocks * tuning.warps / initWarps, 1, blocks);
      tuning.warps = initWarps;
      tuning.reason = "as the options ask for";
    }
    if (rowsInFlight == 0 && programsPerBlock == 0)
      return tuning;
    tuning.reason = "as the options ask for";
    // Without the delta rule a row takes part in one product instead of two:
    // half the registers, so twice the rows fit.
    if (rowsInFlight > 0)
      tuning.rowsInFlight = rowsInFlight > 1 && !shape.delta ? 2 * rowsInFlight
                                                             : rowsInFlight;
    if (programsPerBlock > 0)
      tuning.programsPerBlock = programsPerBlock;
    if (tuning.programsPerBlock > 1) { // measured for one
      tuning.residentBlocks = std::nullopt;
      tuning.parts = tuning.warps = 1;
    }
    return tuning;
  }

  void explain(ssk::KernelOp kernel, StringRef role, const LayerShape &shape,
               const KernelTuning &tuning, const KernelChoices &choices) {
    InFlightDiagnostic remark = kernel.emitRemark("@");
    remark << kernel.getName() << ": " << tuning.rowsInFlight
           << " rows in flight";
    if (device != "cpu") {
      if (tuning.warps > 1)
        remark << ", " << tuning.warps << " warps a state";
      else if (tuning.parts > 1)
        remark << ", 1 or " << tuning.parts << " warps a state";
      else
        remark << ", " << tuning.programsPerBlock << " warps a block";
      if (tuning.residentBlocks)
        remark << ", " << *tuning.residentBlocks << " resident blocks";
      if (tuning.repeatsOrthogonalize || tuning.repeatsMatmul)
        remark << ", with "
               << (tuning.repeatsMatmul ? tuning.repeatsOrthogonalize
                                              ? "products and orthogonalisation"
                                              : "products"
                                        : "orthogonalisation")
               << " at every use";
    }
    remark << " (" << device << ": " << tuning.reason << ")";
    if (role == "compact" && choices.sparesScratch)
      remark << "; orthonormal rows are formed at once and rounded once more, "
                "for shared memory";
    if (role == "compact")
      remark << "; a kernel of its own beside decode; " << explainBuffer(shape);
  }

  LogicalResult convert(func::FuncOp function) {
    auto type = function.getNumArguments() == 0
                    ? ss::StateType()
                    : dyn_cast<ss::StateType>(function.getArgumentTypes()[0]);
    if (!type)
      return function.emitError("has a role but its first argument is not a "
                                "state");
    LayerShape shape = LayerShape::of(type);
    FailureOr<Role> role = getRole(function, shape);
    if (failed(role))
      return failure();
    FailureOr<ss::FusedOp> fused = getFused(function);
    if (failed(fused))
      return failure();

    StringRef roleName =
        function->getAttrOfType<StringAttr>("ss.role").getValue();
    const KernelTuning tuning = tune(roleName, shape);
    KernelChoices choices{tuning.rowsInFlight, tuning.parts, tuning.asksAhead,
                          tuning.formsKept, spareScratch};
    FailureOr<ssk::KernelOp> kernel =
        makeKernel(function, *fused, shape, *role, tuning, choices);
    if (failed(kernel))
      return failure();
    if (roleName == "compact" && device != "cpu" && !choices.sparesScratch &&
        !measureScratch(*kernel).isPadded) {
      kernel->erase();
      choices.sparesScratch = true;
      kernel = makeKernel(function, *fused, shape, *role, tuning, choices);
      if (failed(kernel) || failed(checkFits(*kernel, shape)))
        return failure();
    }
    if (report)
      explain(*kernel, roleName, shape, tuning, choices);
    function.erase();
    ++kernels;
    scratchBytes = std::max<int64_t>(scratchBytes, bytesOfScratch(*kernel));
    return success();
  }

  FailureOr<ssk::KernelOp>
  makeKernel(func::FuncOp function, ss::FusedOp fused, const LayerShape &shape,
             const Role &role, const KernelTuning &tuning,
             const KernelChoices &choices) {
    OpBuilder builder(function);
    SmallVector<Type> types;
    SmallVector<StringRef> names;
    for (const KernelArguments::Argument &argument : role.signature) {
      types.push_back(argument.type);
      names.push_back(argument.name);
    }
    StringAttr roleName = function->getAttrOfType<StringAttr>("ss.role");
    auto kernel =
        ssk::KernelOp::create(builder, function.getLoc(), function.getName(),
                              types, names, roleName.getValue(),
                              tuning.programsPerBlock);
    kernel->setAttr("ssk.comment", builder.getStringAttr(describe(shape)));
    if (tuning.residentBlocks)
      kernel.setMinBlocks(tuning.residentBlocks);
    if (tuning.warps > 1)
      kernel.setWarps(tuning.warps);
    SmallVector<StringRef> repeated;
    if (tuning.repeatsMatmul)
      repeated.push_back("matmul");
    if (tuning.repeatsOrthogonalize)
      repeated.push_back("orthogonalize");
    if (!repeated.empty())
      kernel->setAttr(ssk::kRepeatedAttr, builder.getStrArrayAttr(repeated));
    if (roleName.getValue() == "densify" && !shape.isNarrow())
      allowOverlap(kernel, {"rows", "out"}); // a dense state is folded in place
    // Read twice, which compilers would otherwise know to be the same.
    if (roleName.getValue() == "init")
      allowOverlap(kernel, {"work", "row_base", "matrix_base"});
    promiseAlignment(kernel, shape);
    Block *body = &kernel.getBody().front();
    builder.setInsertionPointToEnd(body);
    if (body->mightHaveTerminator())
      builder.setInsertionPoint(body->getTerminator());
    KernelArguments arguments(role.signature, body->getArguments());
    KernelBuilder k(builder, kernel, fused->getLoc());
    if (failed(role.lower(fused, shape, arguments, choices, k)))
      return failure();
    if (!body->mightHaveTerminator())
      ssk::ReturnOp::create(builder, function.getLoc());
    return kernel;
  }

  /// The sizes, for whoever reads the kernel: they are plain numbers in it.
  static std::string describe(const LayerShape &shape) {
    std::string text = std::to_string(shape.heads) + " heads";
    if (shape.keyHeads != shape.heads)
      text += ", " + std::to_string(shape.keyHeads) + " of keys";
    text += ", values of " + std::to_string(shape.dv) + ", keys of " + std::to_string(shape.dk);
    if (!shape.isDense())
      text += ", buffer of " + std::to_string(shape.capacity) + " pairs";
    if (shape.isFactored())
      text += ", " + std::to_string(shape.active) + " active components";
    return text;
  }

  /// Vectors of a token start at multiples of 4 elements (docs/interfaces.md).
  static void promiseAlignment(ssk::KernelOp kernel, const LayerShape &shape) {
    Builder builder(kernel.getContext());
    SmallVector<StringRef> names = {"q_stride", "k_stride", "v_stride", "y_stride"};
    if (shape.channelDecay)
      names.push_back("gate_stride");
    // Matrices follow each other, or lie where rows of a pool begin.
    if (shape.dv * shape.dk % 4 == 0 && (shape.dv + shape.dk) % 4 == 0)
      names.push_back("matrix_base");
    for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
      if (llvm::is_contained(names, kernel.getArgumentName(i)))
        kernel.setArgAttr(i, ssk::SSKDialect::kDivisibleByAttr, builder.getI64IntegerAttr(4));
  }

  static void allowOverlap(ssk::KernelOp kernel, ArrayRef<StringRef> names) {
    for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
      if (llvm::is_contained(names, kernel.getArgumentName(i)))
        kernel.setArgAttr(i, ssk::SSKDialect::kMayAliasAttr,
                          UnitAttr::get(kernel.getContext()));
  }
};

} // namespace
} // namespace sinkstate
