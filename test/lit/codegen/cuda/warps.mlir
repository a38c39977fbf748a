// RUN: ss-opt %s --pass-pipeline='builtin.module(ssk.kernel(ssk-prepare))' | ss-translate --ssk-to-cuda | FileCheck %s

// Loops over the warps are shared out, as products are; what is written elsewhere the
// first warp writes. The warps meet between them, and nowhere inside a loop.

// CHECK: // 4 warps a program and a block, {{[0-9]+}} bytes of shared memory.
// CHECK: void __launch_bounds__(128, 3)
// CHECK: const int warp = threadIdx.x >> 5;
// CHECK: __shared__ scale_scratch scratch;
ssk.kernel @scale(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f64> {ssk.name = "y"}, %n: i32 {ssk.name = "n"}) attributes {programs_per_block = 1 : i64, warps = 4 : i64, min_blocks = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f64
  %eps = arith.constant 0.01 : f64
  %m = arith.constant 16 : i32
  %limit = arith.index_cast %n : i32 to index
  %a = ssk.alloc : !ssk.shared<16x32xf32>
  %g = ssk.alloc : !ssk.shared<16x16xf64>
  %b = ssk.alloc : !ssk.shared<8x32xf32>
  %s = ssk.alloc : !ssk.shared<16xf64>
  %room = ssk.alloc : !ssk.shared<82xf64>
  %vectors = ssk.alloc : !ssk.shared<17x16xf32>
  %width = arith.constant 32 : i32
  %no = arith.constant 0 : i32
  %yes = arith.constant 1 : i32
  // CHECK: if (warp == 0) ss::fill(scratch.[[GRAM:.*]], 0.0);
  ssk.fill %g, %zero : !ssk.shared<16x16xf64>
  // CHECK-NEXT: for (int64_t i = warp; i < 16; i += 4) {
  // CHECK-NOT: sync
  // CHECK: ss::store_lanes<float, 32>(&scratch.[[A:.*]][i][0], x_tile);
  // CHECK-NEXT: }
  scf.for %i = %c0 to %c16 step %c1 {
    %at = arith.muli %i, %c32 : index
    %t = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<32xf32, lanes = 0>
    ssk.store %t, %a[%i, %c0] : !ssk.tile<32xf32, lanes = 0>, !ssk.shared<16x32xf32>
  } {ssk.over_warps}
  // CHECK: __syncthreads();
  // CHECK-NEXT: ss::matmul_of_warps<4, false, true, true, 16, 16, 32>(scratch.[[GRAM]], scratch.[[A]],
  // CHECK-NEXT: scratch.[[A]]);
  ssk.matmul %a, %a into %g {accumulate, transpose_b} : !ssk.shared<16x32xf32>, !ssk.shared<16x32xf32>, !ssk.shared<16x16xf64>
  // CHECK: __syncthreads();
  // CHECK-NEXT: ss::add_gram<4>(16, 32, 0, 1, scratch.[[A]], scratch.[[VECTORS:.*]]);
  %added = ssk.call @ss_add_gram(%m, %width, %no, %yes, %a, %vectors) reads [4, 5] writes [5] : (i32, i32, i32, i32, !ssk.shared<16x32xf32>, !ssk.shared<17x16xf32>) -> i32
  // CHECK: __syncthreads();
  // CHECK-NEXT: ss::gram_svd<4>(16, scratch.[[VECTORS]],
  %st = ssk.call @ss_gram_svd(%m, %vectors, %s, %room, %eps) reads [1] writes [1, 2, 3] : (i32, !ssk.shared<17x16xf32>, !ssk.shared<16xf64>, !ssk.shared<82xf64>, f64) -> i32
  // CHECK: __syncthreads();
  // CHECK-NEXT: ss::matmul_of_warps<4, false, false, false, 8, 32, 16>({{.*}}, scratch.[[VECTORS]],
  // CHECK-NEXT: scratch.[[A]], int64_t(n));
  ssk.matmul %vectors, %a into %b limit %limit : !ssk.shared<17x16xf32>, !ssk.shared<16x32xf32>, !ssk.shared<8x32xf32>
  // CHECK: for (int64_t i = 2 + warp * 2; i < 16; i += 4 * 2) {
  scf.for %i = %c2 to %c16 step %c2 {
    // CHECK: if (lane == 0)
    // CHECK-NEXT: y[i] = scratch.{{.*}}[i];
    %e = ssk.read %s[%i] : !ssk.shared<16xf64>
    ssk.write %e, %y[%i] : !ssk.global<f64>
  } {ssk.over_warps}
  // CHECK: if (warp == 0)
  // CHECK-NEXT: ss::store_lanes<{{.*}}>(&y[16],
  %l = ssk.load %s[%c0] : !ssk.shared<16xf64> -> !ssk.tile<16xf64, lanes = 0>
  ssk.store %l, %y[%c16] : !ssk.tile<16xf64, lanes = 0>, !ssk.global<f64>
  // CHECK: if (warp == 0 && lane == 0)
  %first = ssk.read %s[%c0] : !ssk.shared<16xf64>
  ssk.write %first, %y[%c0] : !ssk.global<f64>
  ssk.return
}
