//===- CastKernels.h - Kernels of casts, for every back end -----*- C++ -*-===//
#ifndef SINKSTATE_TEST_UNIT_CODEGEN_CASTKERNELS_H
#define SINKSTATE_TEST_UNIT_CODEGEN_CASTKERNELS_H

namespace sinkstate::test {

/// Kernels that convert 128 elements a program, as vectors and one element as a
/// scalar.
inline const char *const kCastKernels = R"(
ssk.kernel @widen(%a: !ssk.global<${T}> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"}, %s: !ssk.global<f32> {ssk.name = "s"}) attributes {programs_per_block = 1 : i64} {
  %p = ssk.program_id : index
  %c128 = arith.constant 128 : index
  %i = arith.muli %p, %c128 : index
  %t = ssk.load %a[%i] : !ssk.global<${T}> -> !ssk.tile<128x${T}, lanes = 0>
  %w = ssk.map (%t) dims [[0]] : (!ssk.tile<128x${T}, lanes = 0>) -> !ssk.tile<128xf32, lanes = 0> {
  ^bb0(%x: ${T}):
    %y = arith.extf %x : ${T} to f32
    ssk.yield %y : f32
  }
  ssk.store %w, %b[%i] : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
  %x = ssk.read %a[%i] : !ssk.global<${T}>
  %y = arith.extf %x : ${T} to f32
  ssk.write %y, %s[%p] : !ssk.global<f32>
  ssk.return
}
ssk.kernel @narrow(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<${T}> {ssk.name = "b"}, %s: !ssk.global<${T}> {ssk.name = "s"}) attributes {programs_per_block = 1 : i64} {
  %p = ssk.program_id : index
  %c128 = arith.constant 128 : index
  %i = arith.muli %p, %c128 : index
  %t = ssk.load %a[%i] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  %w = ssk.map (%t) dims [[0]] : (!ssk.tile<128xf32, lanes = 0>) -> !ssk.tile<128x${T}, lanes = 0> {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to ${T}
    ssk.yield %y : ${T}
  }
  ssk.store %w, %b[%i] : !ssk.tile<128x${T}, lanes = 0>, !ssk.global<${T}>
  %x = ssk.read %a[%i] : !ssk.global<f32>
  %y = arith.truncf %x : f32 to ${T}
  ssk.write %y, %s[%p] : !ssk.global<${T}>
  ssk.return
}
)";

} // namespace sinkstate::test

#endif // SINKSTATE_TEST_UNIT_CODEGEN_CASTKERNELS_H
