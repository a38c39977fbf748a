//===- CpuCodegen.cpp - kernels to objects --------------------------------===//
#include "codegen/cpu/CpuCodegen.h"
#include "codegen/cpu/Passes.h"
#include "dialect/ssk/SSKDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cpu;

template <typename... Args>
static llvm::Error makeError(const char *format, const Args &...args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), format,
                                 args...);
}

ArrayRef<llvm::StringLiteral> sinkstate::cpu::getIsaLevels() {
  static const llvm::StringLiteral levels[] = {"x86-64-v2", "x86-64-v3",
                                               "x86-64-v4"};
  return levels;
}

/// What each level asks of the processor beyond the one before.
static ArrayRef<llvm::StringLiteral> getLevelFeatures(StringRef isa) {
  static const llvm::StringLiteral v2[] = {"sse4.2", "popcnt", "cx16"};
  static const llvm::StringLiteral v3[] = {"sse4.2", "popcnt", "cx16", "avx2",
                                           "bmi2",   "fma",    "f16c"};
  static const llvm::StringLiteral v4[] = {
      "sse4.2", "popcnt",  "cx16",     "avx2",     "bmi2",     "fma",
      "f16c",   "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};
  if (isa == "x86-64-v2")
    return v2;
  if (isa == "x86-64-v3")
    return v3;
  if (isa == "x86-64-v4")
    return v4;
  return {};
}

bool sinkstate::cpu::canRun(StringRef isa) {
  if (isa == "host")
    return true;
  ArrayRef<llvm::StringLiteral> needed = getLevelFeatures(isa);
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return !needed.empty() && llvm::all_of(needed, [&](StringRef feature) {
    return features.lookup(feature);
  });
}

static void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const CpuTarget &target) {
  initializeTargets();
  if (target.isa == "host") {
    auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
    if (!builder)
      return builder.takeError();
    builder->setRelocationModel(llvm::Reloc::PIC_);
    builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    return builder->createTargetMachine();
  }
  if (!llvm::is_contained(getIsaLevels(), target.isa))
    return makeError("instruction set '%s' is unknown, expected host, "
                     "x86-64-v2, x86-64-v3 or x86-64-v4",
                     target.isa.c_str());
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string message;
  const llvm::Target *found =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!found)
    return makeError("no code generator for %s: %s", target.isa.c_str(),
                     message.c_str());
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.isa, "", llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Default));
}

static int64_t getVectorWidth(const CpuTarget &target) {
  if (target.vectorWidth != 0)
    return target.vectorWidth;
  if (target.isa == "x86-64-v2")
    return 4;
  if (target.isa == "x86-64-v3")
    return 8;
  if (target.isa == "x86-64-v4")
    return 16;
  return canRun("x86-64-v4") ? 16 : canRun("x86-64-v3") ? 8 : 4;
}

//===----------------------------------------------------------------------===//
// ssk to LLVM IR
//===----------------------------------------------------------------------===//

/// Runs the pipeline on a copy of the kernels and collects its diagnostics.
static llvm::Expected<OwningOpRef<ModuleOp>> lowerKernels(ModuleOp module,
                                                          int64_t width) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> copy = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(copy->getBody());
  for (auto kernel : module.getOps<ssk::KernelOp>())
    builder.clone(*kernel);
  std::string messages;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      messages += (messages.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  PassManager manager(context);
  buildSSKToLLVMPipeline(manager, width);
  if (failed(verify(*copy)) || failed(manager.run(*copy)))
    return makeError("cannot lower the kernels to the CPU: %s",
                     messages.c_str());
  return copy;
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  // Everything is vectorised on purpose already.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

/// Generated code is linked with nothing, so nothing may be undefined.
static llvm::Error checkNothingUndefined(const llvm::MemoryBuffer &object) {
  auto file = llvm::object::ObjectFile::createObjectFile(object);
  if (!file)
    return file.takeError();
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined))
      continue;
    llvm::Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!name->empty() && *name != "_GLOBAL_OFFSET_TABLE_")
      return makeError("generated code calls '%s', expected no library call: "
                       "the kernels use an operation that this instruction "
                       "set lacks",
                       name->str().c_str());
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
sinkstate::cpu::compileObject(ModuleOp module, const CpuTarget &target) {
  auto machine = createTargetMachine(target);
  if (!machine)
    return machine.takeError();
  auto lowered = lowerKernels(module, getVectorWidth(target));
  if (!lowered)
    return lowered.takeError();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(**lowered, context, "kernels");
  if (!code)
    return makeError("cannot translate the kernels to LLVM IR");
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setDataLayout((*machine)->createDataLayout());
  if (llvm::verifyModule(*code))
    return makeError("the kernels' LLVM IR is not valid");
  optimize(*code, **machine);

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emitter;
  if ((*machine)->addPassesToEmitFile(emitter, stream, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return makeError("no object file writer for %s", target.isa.c_str());
  emitter.run(*code);
  auto object = std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), "kernels.o", /*RequiresNullTerminator=*/false);
  if (llvm::Error error = checkNothingUndefined(*object))
    return std::move(error);
  return object;
}
