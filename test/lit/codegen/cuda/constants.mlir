// RUN: ss-opt %s --pass-pipeline='builtin.module(canonicalize,ssk.kernel(ssk-prepare))' --mlir-print-debuginfo | ss-translate --ssk-to-cuda | FileCheck %s

// Numbers that have a name keep it through folding, which drops locations; others stay
// in the text, a comment of the kernel stands above it.
// CHECK: // scaled: decode
// CHECK-NEXT: // 2 heads
// CHECK: constexpr float row_unit = 0.00390625f;
// CHECK: tile[e] = x_tile[e] * row_unit * row_unit + 3.0f;
ssk.kernel @scaled(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"})
    attributes {role = "decode", ssk.comment = "2 heads"} {
  %p = ssk.program_id : index
  %c128 = arith.constant 128 : index
  %at = arith.muli %p, %c128 : index
  %t = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  %scaled = ssk.map (%t) dims [[0]] : (!ssk.tile<128xf32, lanes = 0>) -> !ssk.tile<128xf32, lanes = 0> {
  ^bb0(%e: f32):
    %unit = arith.constant {ssk.constant_name = "row_unit"} 3.906250e-03 : f32
    %again = arith.constant {ssk.constant_name = "row_unit"} 3.906250e-03 : f32
    %three = arith.constant 3.0 : f32
    %half = arith.mulf %e, %unit : f32
    %other = arith.mulf %half, %again : f32
    %sum = arith.addf %other, %three : f32
    ssk.yield %sum : f32
  }
  ssk.store %scaled, %y[%at] : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}
