//===- ReservedNames.cpp - Names that no variable may have ----------------===//

#include "codegen/cuda/KernelPrinter.h"

using namespace sinkstate;

static constexpr const char *kReserved[] = {
    // C++.
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await",
    "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
    "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
    "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected",
    "public", "register", "reinterpret_cast", "requires", "return", "short", "signed",
    "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
    "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union",
    "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
    // CUDA.
    "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "float2", "float4", "double2",
    "int2", "int4", "uint2", "uint4", "longlong2", "dim3",
    // Types and functions that printed text uses.
    "int32_t", "int64_t", "uint32_t", "uint64_t", "size_t", "abs", "ceil", "ceilf", "copysign",
    "copysignf", "exp", "exp2", "exp2f", "expf", "expm1", "expm1f", "fabs", "fabsf", "floor",
    "floorf", "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf", "fmod", "fmodf", "isfinite",
    "isinf", "isnan", "log", "log1p", "log1pf", "log2", "log2f", "logf", "max", "min", "pow",
    "powf", "rint", "rintf", "round", "roundf", "rsqrt", "rsqrtf", "signbit", "sqrt", "sqrtf",
    "tanh", "tanhf", "trunc", "truncf", "INFINITY", "NAN", "main", "ss", "asm",
    // Variables of every kernel, and the loops over a tile's registers.
    "lane", "warp", "warps", "program", "programs", "program_end",
    "program_step", "task", "scratch", "scratch_of_programs", "scratch_of_warps", "shared_memory", "e", "r"};

const llvm::StringSet<> &cuda::getReservedNames() {
  static const llvm::StringSet<> names = [] {
    llvm::StringSet<> set;
    for (const char *name : kReserved)
      set.insert(name);
    return set;
  }();
  return names;
}
