// RUN: ss-opt %s | ss-opt | FileCheck %s

// A loop whose iterations may run at the same time ends its kernel, in branches.
// CHECK-LABEL: ssk.kernel @columns
ssk.kernel @columns(%n: !ssk.global<i32> {ssk.name = "n"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %i0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %count = ssk.read %n[%c0] : !ssk.global<i32>
  %some = arith.cmpi sgt, %count, %i0 : i32
  scf.if %some {
    scf.for %i = %c0 to %c16 step %c4 {
      ssk.write %zero, %y[%i] : !ssk.global<f32>
    // CHECK: } {ssk.independent}
    } {ssk.independent}
  }
  ssk.return
}
