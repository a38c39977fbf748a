// RUN: ss-opt %s | ss-opt | FileCheck %s

// CHECK-LABEL: ssk.kernel @scale(
// CHECK-SAME: warps = 4 : i64
ssk.kernel @scale(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i32 {ssk.name = "n"}) attributes {programs_per_block = 1 : i64, warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %limit = arith.index_cast %n : i32 to index
  %a = ssk.alloc : !ssk.shared<16x32xf32>
  %g = ssk.alloc : !ssk.shared<16x16xf64>
  %b = ssk.alloc : !ssk.shared<8x32xf32>
  // CHECK: scf.for
  // CHECK: } {ssk.over_warps}
  scf.for %i = %c0 to %c16 step %c1 {
    %c32 = arith.constant 32 : index
    %at = arith.muli %i, %c32 : index
    %t = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<32xf32, lanes = 0>
    ssk.store %t, %a[%i, %c0] : !ssk.tile<32xf32, lanes = 0>, !ssk.shared<16x32xf32>
  } {ssk.over_warps}
  // CHECK: ssk.matmul %{{.*}}, %{{.*}} into %{{.*}} {accumulate, transpose_b}
  ssk.matmul %a, %a into %g {accumulate, transpose_b} : !ssk.shared<16x32xf32>, !ssk.shared<16x32xf32>, !ssk.shared<16x16xf64>
  // Of 16 rows of the first factor, 8.
  // CHECK: ssk.matmul %{{.*}}, %{{.*}} into %{{.*}} limit %{{.*}} :
  ssk.matmul %g, %a into %b limit %limit : !ssk.shared<16x16xf64>, !ssk.shared<16x32xf32>, !ssk.shared<8x32xf32>
  ssk.return
}
