// RUN: ss-opt %s | ss-opt | FileCheck %s
// RUN: ss-opt %s -canonicalize -cse | FileCheck %s --check-prefix=EFFECTS

// Sums of four parts in a branch that ends the kernel; the bodies may use what is
// outside, and read what they like.
// CHECK-LABEL: ssk.kernel @sums
// EFFECTS-LABEL: ssk.kernel @sums
ssk.kernel @sums(%x: !ssk.global<f32> {ssk.name = "x"}, %n: !ssk.global<i32> {ssk.name = "n"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %scratch = ssk.alloc : !ssk.shared<128xf32>
  %zero = arith.constant 0.0 : f32
  // Scratch is each warp's own.
  ssk.fill %scratch, %zero : !ssk.shared<128xf32>
  %count = ssk.read %n[%c0] : !ssk.global<i32>
  %i0 = arith.constant 0 : i32
  %none = arith.cmpi slt, %count, %i0 : i32
  scf.if %none {
    ssk.write %zero, %y[%c0] : !ssk.global<f32>
  } else {
    // CHECK: %[[SUMS:.*]]:2 = ssk.parts 4 {
    // CHECK-NEXT: ^bb0(%[[PART:.*]]: index):
    // CHECK: ssk.yield_part %{{.*}}, %{{.*}} : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<128xf32, lanes = 0>
    // CHECK-NEXT: } last {
    // CHECK-NEXT: ^bb0(%[[A:.*]]: !ssk.tile<128xf32, lanes = 0>, %[[B:.*]]: !ssk.tile<128xf32, lanes = 0>):
    // CHECK-NEXT: ssk.yield_part %[[B]], %[[A]]
    // CHECK-NEXT: } : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<128xf32, lanes = 0>
    %sums:2 = ssk.parts 4 {
    ^bb0(%part: index):
      %at = arith.muli %part, %c128 : index
      %t = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
      %s = ssk.load %scratch[%c0] : !ssk.shared<128xf32> -> !ssk.tile<128xf32, lanes = 0>
      ssk.yield_part %t, %s : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<128xf32, lanes = 0>
    } last {
    ^bb0(%a: !ssk.tile<128xf32, lanes = 0>, %b: !ssk.tile<128xf32, lanes = 0>):
      ssk.yield_part %b, %a : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<128xf32, lanes = 0>
    } : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<128xf32, lanes = 0>
    ssk.store %sums#0, %y[%c0] : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
    ssk.store %sums#1, %y[%c128] : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
    // What nobody needs goes away: it only reads.
    // EFFECTS-COUNT-1: ssk.parts
    // EFFECTS-NOT: ssk.parts
  }
  ssk.return
}

// EFFECTS-LABEL: ssk.kernel @unused
// EFFECTS-NOT: ssk.parts
ssk.kernel @unused(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %sum = ssk.parts 2 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}
