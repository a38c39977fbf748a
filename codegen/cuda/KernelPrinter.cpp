//===- KernelPrinter.cpp - The frame of a kernel and its statements -------===//

#include "codegen/cuda/KernelPrinter.h"
#include "codegen/common/LocationText.h"
#include "codegen/cuda/CudaStatement.h"
#include "codegen/cuda/CudaTypes.h"
#include "dialect/ssk/SSKNames.h"
#include "dialect/ssk/SSKWarps.h"
#include "passes/ssk/LaneLayout.h"
#include "passes/ssk/ScratchSlots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::codegen;
using namespace sinkstate::cuda;

/// What a kernel is for, in words: printed in its banner.
static constexpr StringLiteral kCommentAttr = "ssk.comment";
/// Warps on a multiprocessor for which the kernel with a warp for each part has
/// registers: 128 each, so that all of a chunk's loads are on their way at once.
static constexpr int64_t kWarpsOfParts = 16;

KernelPrinter::KernelPrinter(ssk::KernelOp kernel, const CudaPrintOptions &options)
    : kernel(kernel), options(options), forming(kernel),
      plan(kernel, forming, getReservedNames()), info(getCudaKernelInfo(kernel)) {
  kernel.walk([&](ssk::PartsOp found) { parts = found; });
  if (info.loops)
    kernel.walk([&](scf::ForOp loop) {
      if (loop->hasAttr(ssk::SSKDialect::kIndependentAttr))
        spread = loop;
    });
}

/// Of an independent loop.
static int64_t getIterations(scf::ForOp loop) {
  return *getConstantIntValue(loop.getUpperBound()) / *getConstantIntValue(loop.getStep());
}

std::string KernelPrinter::print() {
  printBanner();
  printScratch();
  printSignature();
  printPrologue();
  printBlock(kernel.getBody().front(), /*isTail=*/true);
  if (info.loops)
    out.close();
  out.close();
  if (parts)
    printEntries();
  return out.take();
}

//===----------------------------------------------------------------------===//
// Signature and frame
//===----------------------------------------------------------------------===//

namespace {
struct Access {
  bool reads = false, writes = false;
};
} // namespace

static Access getAccess(Value memory) {
  Access access;
  for (Operation *user : memory.getUsers()) {
    auto effects = cast<MemoryEffectOpInterface>(user);
    SmallVector<MemoryEffects::EffectInstance> found;
    effects.getEffectsOnValue(memory, found);
    for (const MemoryEffects::EffectInstance &effect : found) {
      access.reads |= isa<MemoryEffects::Read>(effect.getEffect());
      access.writes |= isa<MemoryEffects::Write>(effect.getEffect());
    }
  }
  return access;
}

bool KernelPrinter::isWritten(Value memory) { return getAccess(memory).writes; }

void KernelPrinter::printBanner() {
  std::string title = kernel.getName().str();
  if (kernel.getRole())
    title += ": " + kernel.getRole()->str();
  out.comment(title);
  if (auto comment = kernel->getAttrOfType<StringAttr>(kCommentAttr))
    out.comment(comment.getValue());
  out.comment("");
  std::string frame = "One warp a program, " + std::to_string(info.programsPerBlock) +
                      (info.programsPerBlock == 1 ? " program a block" : " programs a block");
  if (info.warps > 1)
    frame = std::to_string(info.warps) + " warps a program and a block";
  if (parts)
    frame = "One warp a program and a block, or " + std::to_string(info.parts) + " warps";
  if (info.sharedBytes)
    frame += ", " + std::to_string(info.sharedBytes) +
             (info.isSharedDynamic ? " bytes of dynamic shared memory"
                                   : " bytes of shared memory") +
             (parts ? " a warp" : "");
  if (spread)
    frame = "One warp a task, " + std::to_string(getIterations(spread)) +
            " tasks a program, in a loop over tasks";
  else if (info.loops)
    frame += ", in a loop over programs";
  out.comment(frame + ".");
  SmallVector<StringRef> read, written;
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    if (!isa<ssk::GlobalType>(argument.getType()))
      continue;
    Access access = getAccess(argument);
    if (access.reads)
      read.push_back(getName(argument));
    if (access.writes)
      written.push_back(getName(argument));
  }
  if (!read.empty())
    out.comment("reads " + llvm::join(read, ", "));
  if (!written.empty())
    out.comment("writes " + llvm::join(written, ", "));
}

/// Scratch is a structure, one for each program of the block; what shares a slot is
/// a union.
void KernelPrinter::printScratch() {
  SmallVector<ssk::ScratchSlot> slots = ssk::getScratchSlots(kernel);
  if (slots.empty())
    return;
  out.blank();
  out.comment(parts ? "What one warp keeps in shared memory."
                             : "What one program keeps in shared memory.");
  out.open("struct " + kernel.getName() + "_scratch");
  for (const ssk::ScratchSlot &slot : slots) {
    bool isUnion = slot.allocs.size() > 1;
    if (isUnion)
      out.open("union");
    for (ssk::AllocOp alloc : slot.allocs) {
      auto type = cast<ssk::SharedType>(alloc.getResult().getType());
      SmallVector<int64_t> extents(type.getShape());
      extents.back() = alloc.getRowPitch();
      out.line("alignas(16) " + getCppScalarType(type.getElementType()) + " " +
               getName(alloc.getResult()) + getExtents(extents) + ";");
    }
    if (isUnion)
      out.close("};");
  }
  out.close("};");
  out.blank();
}

/// Of the kernel, or of what both kernels of one with parts do.
void KernelPrinter::printSignature() {
  if (parts) {
    out.line("template <int warps>");
    out.line("__device__ __forceinline__ void");
    return printParameters(kernel.getName() + "_body");
  }
  std::optional<int64_t> blocks = kernel.getMinBlocks();
  printBounds(kernel.getProgramsPerBlock() * info.warps, blocks.value_or(0));
  printParameters(kernel.getName());
}

/// `minBlocks`: that a multiprocessor should hold; 0: the GPU's compiler decides.
void KernelPrinter::printBounds(int64_t warps, int64_t minBlocks) {
  std::string bounds = std::to_string(warps * ssk::kWarpSize);
  if (minBlocks > 0)
    bounds += ", " + std::to_string(minBlocks);
  out.line("extern \"C\" __global__ void __launch_bounds__(" + bounds + ")");
}

/// The two kernels around a body with parts.
void KernelPrinter::printEntries() {
  auto printEntry = [&](int64_t warps, const Twine &name, int64_t minBlocks) {
    out.blank();
    printBounds(warps, minBlocks);
    printParameters(name);
    out.line(kernel.getName() + "_body<" + Twine(warps) + ">(");
    out.indent();
    out.indent();
    for (BlockArgument argument : kernel.getBody().getArguments())
      out.line(getName(argument) + ",");
    out.line("programs);");
    out.outdent();
    out.outdent();
    out.close();
  };
  printEntry(1, kernel.getName(), kernel.getMinBlocks().value_or(0));
  printEntry(info.parts, kernel.getName() + "_parts", kWarpsOfParts / info.parts);
}

void KernelPrinter::printParameters(const Twine &name) {
  out.line(name + "(");
  out.indent();
  out.indent();
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    std::string declaration;
    if (auto global = dyn_cast<ssk::GlobalType>(argument.getType())) {
      declaration = (getAccess(argument).writes ? "" : "const ") +
                    getCppScalarType(global.getElementType()).str() + " *" +
                    (kernel.mayAlias(argument.getArgNumber()) ? "" : "__restrict__ ");
    } else {
      declaration = getCppScalarType(argument.getType()).str() + " ";
    }
    out.line(declaration + getName(argument) + ",");
  }
  out.line("int64_t programs) {");
  out.outdent();
}

/// The program's number; the whole warp leaves if there is no such program.
void KernelPrinter::printPrologue() {
  int64_t perBlock = kernel.getProgramsPerBlock();
  std::string first = "blockIdx.x";
  if (perBlock > 1)
    first = "int64_t(blockIdx.x) * " + std::to_string(perBlock) + " + (threadIdx.x >> 5)";
  if (!info.loops) {
    out.line("const int64_t program = " + first + ";");
    out.line("if (program >= programs)");
    out.line("  return;");
  }
  if (parts)
    out.line("const int warp = warps > 1 ? threadIdx.x >> 5 : 0;");
  if (info.warps > 1)
    out.line("const int warp = threadIdx.x >> 5;");
  if (!kernel.getBody().getOps<ssk::AllocOp>().empty())
    printScratchOfProgram(perBlock);
  WalkResult writes = kernel.walk([](ssk::WriteOp) { return WalkResult::interrupt(); });
  if (writes.wasInterrupted())
    out.line("const int lane = ss::lane_id();");
  if (parts) {
    // With one warp there are programs enough to hide how a kernel begins.
    out.line("if (warps > 1)");
    out.line("  ss::follow_stream();");
  }
  if (info.loops)
    openProgramLoop(first, perBlock);
  out.blank();
}

/// Where the length of a kernel's work list is, or null.
BlockArgument KernelPrinter::getWorkCount() {
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (isa<ssk::GlobalType>(argument.getType()) &&
        kernel.getArgumentName(argument.getArgNumber()) == "work_count")
      return argument;
  return {};
}

/// The loop over the programs of a warp. It ends with the work list where the
/// kernel has one.
void KernelPrinter::openProgramLoop(StringRef first, int64_t perBlock) {
  StringRef end = "programs";
  BlockArgument count = getWorkCount();
  // A block's warps leave together, and an end that is kept takes registers.
  const bool returns = count && info.warps > 1 && !spread;
  if (count && !returns) {
    out.line("const int64_t program_end = min(programs, int64_t(" +
             getName(count) + "[0]));");
    end = "program_end";
  }
  std::string step = "int64_t(gridDim.x)";
  if (perBlock > 1)
    step += " * " + std::to_string(perBlock);
  if (!returns)
    out.line("const int64_t program_step = " + step + ";");
  // A task is a program or, of one with an independent loop, an iteration of it.
  std::string task = spread ? "task" : "program", tasks = end.str();
  if (spread)
    tasks += " * " + std::to_string(getIterations(spread));
  out.open("for (int64_t " + task + " = " + first + "; " + task + " < " + tasks + "; " + task +
           " += " + (returns ? StringRef(step) : "program_step") + ")");
  if (returns) {
    out.line("if (program >= int64_t(" + getName(count) + "[0]))");
    out.line("  return;");
  }
  if (spread)
    out.line("const int64_t program = task / " + Twine(getIterations(spread)) + ";");
  // Other lanes may still read what the last program left in the scratch.
  if (!kernel.getBody().getOps<ssk::AllocOp>().empty())
    printSync();
}

void KernelPrinter::printScratchOfProgram(int64_t perBlock) {
  std::string type = (kernel.getName() + "_scratch").str();
  if (parts) {
    out.line("__shared__ " + type + " scratch_of_warps[warps];");
    return out.line(type + " &scratch = scratch_of_warps[warp];");
  }
  bool isDynamic = info.isSharedDynamic;
  if (isDynamic)
    out.line("extern __shared__ __align__(16) unsigned char shared_memory[];");
  else if (perBlock == 1)
    return out.line("__shared__ " + type + " scratch;");
  else
    out.line("__shared__ " + type + " scratch_of_programs[" + Twine(perBlock) + "];");
  std::string all = isDynamic ? "reinterpret_cast<" + type + " *>(shared_memory)"
                              : "scratch_of_programs";
  std::string place = info.warps > 1 ? "[0]" : "[threadIdx.x >> 5]";
  out.line(type + " &scratch = " + all + place + ";");
}

/// A meeting of the lanes, or warps, of a program.
void KernelPrinter::printSync() {
  out.line(info.warps > 1 ? "__syncthreads();" : "__syncwarp();");
}

void KernelPrinter::print(ssk::SyncOp) { printSync(); }

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// `isTail`: nothing follows the block but the end of the kernel.
void KernelPrinter::printBlock(Block &block, bool isTail) {
  for (Operation &op : block.without_terminator()) {
    if (forming.isInlined(&op) || isa<ssk::ProgramIdOp, ssk::AllocOp>(op))
      continue;
    // The first of a group of writes prints them all.
    if (isa<ssk::WriteOp>(op) && isa_and_nonnull<ssk::WriteOp>(getPreviousStatement(&op)))
      continue;
    printNote(op);
    bool isLast = isTail && op.getNextNode() == block.getTerminator();
    if (auto branch = dyn_cast<scf::IfOp>(op); branch && isLast)
      printTailBranch(branch);
    else
      printStatement(op);
  }
}

Operation *KernelPrinter::getPreviousStatement(Operation *op) const {
  op = op->getPrevNode();
  while (op && forming.isInlined(op))
    op = op->getPrevNode();
  return op;
}

/// The note on a group of operations stands once, above the first of them.
void KernelPrinter::printNote(Operation &op) {
  StringRef note = getNote(op.getLoc());
  if (!note.empty() && note != lastNote) {
    out.blank();
    out.comment(note);
    lastNote = note;
  }
  if (!options.lineDirectives)
    return;
  if (FileLineColLoc place = getFilePlace(op.getLoc()))
    out.directive("#line " + Twine(place.getLine()) + " \"" + place.getFilename().getValue() +
                  "\"");
}

void KernelPrinter::printStatement(Operation &op) {
  if (auto statement = dyn_cast<CudaStatement>(op))
    return statement.printCuda(*this);
  printScalar(op.getResult(0));
}

/// Declares what an iteration argument needs and gives it its first value.
void KernelPrinter::declareCarried(Value target, Value init) {
  if (plan.isShared(target, init))
    return;
  if (!isa<ssk::TileType>(target.getType()))
    return assignScalar(target, getText(init));
  declareTile(target);
  out.line("ss::assign(" + getName(target) + ", " + getName(init) + ");");
}

/// The one iteration that a task of the kernel is.
void KernelPrinter::printIteration(scf::ForOp loop) {
  out.line("{");
  out.indent();
  std::string step = getText(loop.getStep());
  out.line("const int64_t " + getName(loop.getInductionVar()) + " = task % " +
           Twine(getIterations(loop)) + (step == "1" ? "" : " * " + step) + ";");
  printBlock(*loop.getBody(), /*isTail=*/false);
  out.outdent();
  out.line("}");
}

void KernelPrinter::print(scf::ForOp loop) {
  if (loop == spread)
    return printIteration(loop);
  for (auto [argument, init] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs()))
    declareCarried(argument, init);
  if (auto times = loop->getAttrOfType<IntegerAttr>(ssk::kUnrollAttr))
    out.directive("#pragma unroll " + Twine(times.getInt()));
  Value counter = loop.getInductionVar();
  StringRef name = getName(counter);
  std::string type = getCppScalarType(counter.getType()).str();
  std::string step = getText(loop.getStep());
  std::string begin = getText(loop.getLowerBound());
  if (info.warps > 1 && ssk::isOverWarps(loop)) {
    std::string own = step == "1" ? "warp" : "warp * " + step;
    begin = begin == "0" ? own : begin + " + " + own;
    step = std::to_string(info.warps) + (step == "1" ? "" : " * " + step);
  }
  out.open("for (" + type + " " + name + " = " + begin + "; " + name +
           " < " + getText(loop.getUpperBound()) + "; " +
           (step == "1" ? "++" + name.str() : (name + " += " + step).str()) + ")");
  printBlock(*loop.getBody(), /*isTail=*/false);
  printYields(loop.getRegionIterArgs(), loop.getBody()->getTerminator()->getOperands());
  out.close();
  out.blank();
}

/// A branch that only chooses one of two scalar expressions.
bool KernelPrinter::isConditional(scf::IfOp branch) const {
  if (branch.getNumResults() != 1 || isa<ssk::TileType>(branch.getResult(0).getType()))
    return false;
  auto isExpression = [&](Region &side) {
    return llvm::all_of(side.front().without_terminator(),
                        [&](Operation &op) { return forming.isInlined(&op); });
  };
  return isExpression(branch.getThenRegion()) && isExpression(branch.getElseRegion());
}

void KernelPrinter::print(scf::IfOp branch) {
  if (isConditional(branch)) {
    CppExpr value = getCppConditional(getExpr(branch.getCondition()),
                                      getExpr(branch.thenYield().getOperand(0)),
                                      getExpr(branch.elseYield().getOperand(0)));
    return assignScalar(branch.getResult(0), value.text);
  }
  for (Value result : branch.getResults()) {
    if (isa<ssk::TileType>(result.getType()))
      declareTile(result);
    else if (plan.isDeclaredBy(result))
      out.line(getCppScalarType(result.getType()) + " " + getName(result) + ";");
  }
  bool hasThen = printsAnything(branch, branch.getThenRegion());
  bool hasElse = printsAnything(branch, branch.getElseRegion());
  if (!hasThen && !hasElse)
    return;
  auto printSide = [&](Region &side) {
    printBlock(side.front(), /*isTail=*/false);
    printYields(branch.getResults(), side.front().getTerminator()->getOperands());
  };
  out.open("if (" + (hasThen ? getText(branch.getCondition()) : getNegation(branch.getCondition())) +
           ")");
  printSide(hasThen ? branch.getThenRegion() : branch.getElseRegion());
  if (hasThen && hasElse) {
    out.reopen("} else");
    printSide(branch.getElseRegion());
  }
  out.close();
  out.blank();
}

/// False if a side of a branch only passes on what its variables hold already.
bool KernelPrinter::printsAnything(scf::IfOp branch, Region &side) const {
  if (side.empty())
    return false;
  Block &block = side.front();
  for (Operation &op : block.without_terminator())
    if (!forming.isInlined(&op))
      return true;
  for (auto [result, yielded] :
       llvm::zip(branch.getResults(), block.getTerminator()->getOperands()))
    if (!plan.isShared(result, yielded))
      return true;
  return false;
}

static int64_t countOperations(Region &region) {
  int64_t count = 0;
  region.walk([&](Operation *) { ++count; });
  return count;
}

/// Whether the loop over programs has made sure of this: `program < work_count[0]`.
bool KernelPrinter::isLoopBound(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!info.loops || !compare || compare.getPredicate() != arith::CmpIPredicate::slt ||
      !compare.getLhs().getDefiningOp<ssk::ProgramIdOp>())
    return false;
  Value end = compare.getRhs();
  if (auto cast = end.getDefiningOp<arith::IndexCastOp>())
    end = cast.getIn();
  auto read = end.getDefiningOp<ssk::ReadOp>();
  return read && read.getMemory() == getWorkCount() && read.getIndices().size() == 1 &&
         matchPattern(read.getIndices()[0], m_Zero());
}

/// The last branch of a kernel: its short side is done with the program, so that
/// the long one needs no braces.
void KernelPrinter::printTailBranch(scf::IfOp branch) {
  Region &yes = branch.getThenRegion(), &no = branch.getElseRegion();
  if (no.empty() && isLoopBound(branch.getCondition()))
    return printBlock(yes.front(), /*isTail=*/true);
  bool returnsIfTrue = !no.empty() && countOperations(yes) <= countOperations(no);
  Region &shortSide = returnsIfTrue ? yes : no;
  Region &longSide = returnsIfTrue ? no : yes;
  std::string condition = returnsIfTrue ? getText(branch.getCondition())
                                        : getNegation(branch.getCondition());
  StringRef done = info.loops ? "continue;" : "return;";
  bool isEmpty = shortSide.empty() || llvm::hasSingleElement(shortSide.front());
  if (isEmpty) {
    out.line("if (" + condition + ")");
    out.line("  " + done);
  } else {
    out.open("if (" + condition + ")");
    printBlock(shortSide.front(), /*isTail=*/false);
    out.line(done);
    out.close();
  }
  out.blank();
  printBlock(longSide.front(), /*isTail=*/true);
}

//===----------------------------------------------------------------------===//
// Values that leave a block
//===----------------------------------------------------------------------===//

/// True if evaluating `value` reads the variable of `target`.
bool KernelPrinter::readsVariable(Value value, Value target) const {
  if (plan.isShared(value, target))
    return true;
  Operation *def = value.getDefiningOp();
  return def && forming.isInlined(def) && llvm::any_of(def->getOperands(), [&](Value operand) {
           return readsVariable(operand, target);
         });
}

/// Assigns what a block yields, all at once as the IR means it: with temporaries if
/// one value depends on a variable that another one replaces.
void KernelPrinter::printYields(ValueRange targets, ValueRange yielded) {
  SmallVector<std::pair<Value, Value>> moves;
  for (auto [target, value] : llvm::zip(targets, yielded))
    if (!plan.isShared(target, value))
      moves.push_back({target, value});
  bool needsTemporaries = false;
  for (size_t i = 0; i < moves.size(); ++i)
    for (size_t j = i + 1; j < moves.size(); ++j)
      needsTemporaries |= readsVariable(moves[j].second, moves[i].first);
  auto move = [&](bool isTile, const std::string &to, const std::string &from) {
    out.line(isTile ? "ss::assign(" + to + ", " + from + ");" : to + " = " + from + ";");
  };
  if (!needsTemporaries) {
    for (auto [target, value] : moves) {
      if (isa<ssk::TileType>(target.getType()))
        move(true, getName(target).str(), getText(value));
      else
        printAssignment(target, value);
    }
    return;
  }
  for (auto [target, value] : moves) {
    std::string next = getName(target).str() + "_next";
    if (auto tile = dyn_cast<ssk::TileType>(target.getType())) {
      out.line(getCppScalarType(tile.getElementType()) + " " + next +
               getExtents(getRegisterShape(tile)) + ";");
      move(true, next, getText(value));
    } else {
      out.line("const " + getCppScalarType(target.getType()) + " " + next + " = " +
               getText(value) + ";");
    }
  }
  for (auto [target, value] : moves)
    move(isa<ssk::TileType>(target.getType()), getName(target).str(),
         getName(target).str() + "_next");
}
