// RUN: ss-opt %s --pass-pipeline='builtin.module(ssk.kernel(ssk-prepare))' | FileCheck %s

// A loop over the warps is one operation for syncs: none inside, one between it and
// whatever reads what it wrote. Rows of 80 are set apart for products along both
// sides. What divides the elements of a table makes accesses wide.
// CHECK-LABEL: ssk.kernel @chunks
ssk.kernel @chunks(%x: !ssk.global<f32> {ssk.name = "x"},
                   %base: !ssk.global<i64> {ssk.name = "base", ssk.divisible_by = 4 : i64},
                   %odd: !ssk.global<i64> {ssk.name = "odd"},
                   %y: !ssk.global<f64> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64, warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c80 = arith.constant 80 : index
  %first = ssk.read %base[%c0] : !ssk.global<i64>
  %second = ssk.read %odd[%c0] : !ssk.global<i64>
  %even = arith.index_cast %first : i64 to index
  %any = arith.index_cast %second : i64 to index
  // CHECK: %[[A:.*]] = ssk.alloc {pitch = 84 : i64, slot = {{.*}}} : !ssk.shared<16x80xf32>
  %a = ssk.alloc : !ssk.shared<16x80xf32>
  // CHECK: ssk.alloc {pitch = 84 : i64, slot = {{.*}}} : !ssk.shared<80x80xf64>
  %g = ssk.alloc : !ssk.shared<80x80xf64>
  // CHECK: scf.for
  scf.for %round = %c0 to %c16 step %c1 {
    // The product of the round before has to be done with the rows.
    // CHECK: ssk.sync
    // CHECK-NEXT: scf.for
    scf.for %i = %c0 to %c16 step %c1 {
      // CHECK-NOT: ssk.sync
      %row = arith.muli %i, %c80 : index
      %at = arith.addi %even, %row : index
      // CHECK: ssk.load {{.*}} {vector = 4 : i64}
      %t = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<80xf32, lanes = 0>
      ssk.store %t, %a[%i, %c0] : !ssk.tile<80xf32, lanes = 0>, !ssk.shared<16x80xf32>
      // CHECK: } {ssk.over_warps}
    } {ssk.over_warps}
    // CHECK-NEXT: ssk.sync
    // CHECK-NEXT: ssk.matmul
    ssk.matmul %a, %a into %g {transpose_a} : !ssk.shared<16x80xf32>, !ssk.shared<16x80xf32>, !ssk.shared<80x80xf64>
  }
  // CHECK: ssk.load %arg0[{{.*}}] : !ssk.global<f32>
  %u = ssk.load %x[%any] : !ssk.global<f32> -> !ssk.tile<80xf32, lanes = 0>
  // CHECK: ssk.sync
  // CHECK-NEXT: scf.for
  scf.for %i = %c0 to %c80 step %c1 {
    %e = ssk.read %g[%i, %i] : !ssk.shared<80x80xf64>
    ssk.write %e, %y[%i] : !ssk.global<f64>
  } {ssk.over_warps}
  // A single element, but not by the first warp alone: the next one has to wait.
  // CHECK: ssk.sync
  // CHECK-NEXT: ssk.write
  %zero = arith.constant 0.0 : f64
  ssk.write %zero, %y[%c0] : !ssk.global<f64>
  ssk.return
}
