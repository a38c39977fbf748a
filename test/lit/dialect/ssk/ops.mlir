// RUN: ss-opt %s | ss-opt | FileCheck %s
// RUN: ss-opt %s -mlir-print-op-generic | ss-opt | FileCheck %s

// CHECK-LABEL: ssk.kernel @everything
// CHECK-SAME: %{{.*}}: !ssk.global<f32> {ssk.may_alias, ssk.name = "rows"}
// CHECK-SAME: attributes {programs_per_block = 2 : i64, role = "decode"}
ssk.kernel @everything(%rows: !ssk.global<f32> {ssk.name = "rows", ssk.may_alias},
                       %y: !ssk.global<f32> {ssk.name = "y"},
                       %rank: !ssk.global<i32> {ssk.name = "rank"},
                       %base: !ssk.global<i64> {ssk.name = "base"},
                       %heads: i64 {ssk.name = "heads"},
                       %scale: f32 {ssk.name = "scale"},
                       %m: i32 {ssk.name = "m"})
    attributes {programs_per_block = 2 : i64, role = "decode"} {
  // CHECK: %[[P:.*]] = ssk.program_id : index
  %p = ssk.program_id : index
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f64
  // CHECK: %[[S:.*]] = ssk.alloc : !ssk.shared<16x128xf32>
  %s = ssk.alloc : !ssk.shared<16x128xf32>
  %gram = ssk.alloc : !ssk.shared<16x16xf64>
  %t = ssk.alloc : !ssk.shared<16x16xf64>
  %w = ssk.alloc : !ssk.shared<160xf32>
  %idx = ssk.alloc : !ssk.shared<16xi32>
  // CHECK: ssk.fill %{{.*}}, %{{.*}} : !ssk.shared<16x16xf64>
  ssk.fill %gram, %zero : !ssk.shared<16x16xf64>
  // CHECK: ssk.read %{{.*}}[%[[P]]] : !ssk.global<i32>
  %n32 = ssk.read %rank[%p] : !ssk.global<i32>
  %n = arith.index_cast %n32 : i32 to index
  // CHECK: ssk.read %{{.*}}[%{{.*}}, %{{.*}}] : !ssk.shared<16x16xf64>
  %x = ssk.read %gram[%c0, %c0] : !ssk.shared<16x16xf64>
  // CHECK: ssk.write %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : !ssk.shared<16x16xf64>
  ssk.write %x, %t[%c0, %c0] : !ssk.shared<16x16xf64>
  // CHECK: ssk.load %{{.*}}[%[[P]]] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  %k = ssk.load %y[%p] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  // CHECK: %[[ACC:.*]] = ssk.splat %{{.*}} : f32 -> !ssk.tile<128xf32, lanes = 0>
  %acc = ssk.splat %scale : f32 -> !ssk.tile<128xf32, lanes = 0>
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ACC]]) -> (!ssk.tile<128xf32, lanes = 0>)
  %sum = scf.for %i = %c0 to %n step %c4 iter_args(%a = %acc) -> (!ssk.tile<128xf32, lanes = 0>) {
    %left = arith.subi %n, %i : index
    // CHECK: ssk.load %{{.*}}[%{{.*}}] stride %{{.*}} limit %{{.*}} {vector = 4 : i64} : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
    %r = ssk.load %rows[%i] stride %c256 limit %left {vector = 4 : i64} : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
    // CHECK: ssk.dot %{{.*}}, %{{.*}} : !ssk.tile<4x128xf32, lanes = 1>, !ssk.tile<128xf32, lanes = 0> -> !ssk.tile<4xf32>
    %d = ssk.dot %r, %k : !ssk.tile<4x128xf32, lanes = 1>, !ssk.tile<128xf32, lanes = 0> -> !ssk.tile<4xf32>
    // CHECK: ssk.accumulate %{{.*}}, %{{.*}}, %{{.*}} : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<4xf32>, !ssk.tile<4x128xf32, lanes = 1>
    %b = ssk.accumulate %a, %d, %r : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<4xf32>, !ssk.tile<4x128xf32, lanes = 1>
    scf.yield %b : !ssk.tile<128xf32, lanes = 0>
  }
  // CHECK: ssk.map (%{{.*}}, %{{.*}}) dims {{\[}}[0, 1], [1]] : (!ssk.tile<4x128xf32, lanes = 1>, !ssk.tile<128xf32, lanes = 0>) -> !ssk.tile<4x128xf32, lanes = 1> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
  %r0 = ssk.load %s[%c0, %c0] : !ssk.shared<16x128xf32> -> !ssk.tile<4x128xf32, lanes = 1>
  %u = ssk.map (%r0, %k) dims [[0, 1], [1]] : (!ssk.tile<4x128xf32, lanes = 1>, !ssk.tile<128xf32, lanes = 0>) -> !ssk.tile<4x128xf32, lanes = 1> {
  ^bb0(%e: f32, %f: f32):
    %g = arith.mulf %e, %f : f32
    %h = arith.mulf %g, %scale : f32
    // CHECK: ssk.yield %{{.*}} : f32
    ssk.yield %h : f32
  }
  // CHECK: ssk.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : !ssk.tile<4x128xf32, lanes = 1>, !ssk.shared<16x128xf32>
  ssk.store %u, %s[%c0, %c0] : !ssk.tile<4x128xf32, lanes = 1>, !ssk.shared<16x128xf32>
  // CHECK: ssk.reduce add %{{.*}} axis 1 : !ssk.tile<4x128xf32, lanes = 1> -> !ssk.tile<4xf32>
  %sums = ssk.reduce add %u axis 1 : !ssk.tile<4x128xf32, lanes = 1> -> !ssk.tile<4xf32>
  // CHECK: ssk.reduce max %{{.*}} axis 0 : !ssk.tile<4x128xf32, lanes = 1> -> !ssk.tile<128xf32, lanes = 0>
  %tops = ssk.reduce max %u axis 0 : !ssk.tile<4x128xf32, lanes = 1> -> !ssk.tile<128xf32, lanes = 0>
  // CHECK: ssk.reduce min %{{.*}} axis 0 : !ssk.tile<4xf32> -> f32
  %low = ssk.reduce min %sums axis 0 : !ssk.tile<4xf32> -> f32
  %dot = ssk.dot %tops, %k : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<128xf32, lanes = 0> -> f32
  ssk.write %dot, %w[%c0] : !ssk.shared<160xf32>
  ssk.write %low, %w[%c4] : !ssk.shared<160xf32>
  // CHECK: ssk.sync
  ssk.sync
  // CHECK: ssk.matmul %{{.*}}, %{{.*}} into %{{.*}} {transpose_b} : !ssk.shared<16x128xf32>, !ssk.shared<16x128xf32>, !ssk.shared<16x16xf64>
  ssk.matmul %s, %s into %gram {transpose_b} : !ssk.shared<16x128xf32>, !ssk.shared<16x128xf32>, !ssk.shared<16x16xf64>
  // CHECK: ssk.top_k %{{.*}} count %{{.*}} into %{{.*}} : !ssk.shared<160xf32>, !ssk.shared<16xi32>
  ssk.top_k %w count %n into %idx : !ssk.shared<160xf32>, !ssk.shared<16xi32>
  // CHECK: ssk.call @ss_orthogonalize(%{{.*}}, %{{.*}}, %{{.*}}) reads [1] writes [1, 2] : (i32, !ssk.shared<16x16xf64>, !ssk.shared<16x16xf64>) -> i32
  %status = ssk.call @ss_orthogonalize(%m, %gram, %t) reads [1] writes [1, 2] : (i32, !ssk.shared<16x16xf64>, !ssk.shared<16x16xf64>) -> i32
  ssk.write %status, %idx[%c0] : !ssk.shared<16xi32>
  // CHECK: ssk.store %{{.*}}, %{{.*}}[%{{.*}}] limit %{{.*}} : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %sum, %y[%c0] limit %n : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
  // CHECK: ssk.return
  ssk.return
}

// CHECK-LABEL: ssk.kernel @copies
ssk.kernel @copies(%rows: !ssk.global<f32> {ssk.name = "rows"}, %n: i64 {ssk.name = "n"}) {
  // CHECK: ssk.alloc {pitch = 136 : i64} : !ssk.shared<16x128xf32>
  %s = ssk.alloc {pitch = 136 : i64} : !ssk.shared<16x128xf32>
  %v = ssk.alloc : !ssk.shared<64xf32>
  %i = arith.index_cast %n : i64 to index
  // CHECK: ssk.copy %{{.*}}[%[[I:.*]]] to %{{.*}}[%[[I]]] limit %[[I]] : !ssk.global<f32>, !ssk.shared<16x128xf32>
  ssk.copy %rows[%i] to %s[%i] limit %i : !ssk.global<f32>, !ssk.shared<16x128xf32>
  // CHECK: ssk.copy %{{.*}}[%{{.*}}] to %{{.*}} {vector = 4 : i64} : !ssk.global<f32>, !ssk.shared<64xf32>
  ssk.copy %rows[%i] to %v {vector = 4 : i64} : !ssk.global<f32>, !ssk.shared<64xf32>
  // CHECK: ssk.wait_copies
  ssk.wait_copies
  ssk.return
}

// CHECK-LABEL: ssk.kernel @ahead
ssk.kernel @ahead(%rows: !ssk.global<f32> {ssk.name = "rows"}) {
  // CHECK: %[[NEXT:.*]] = ssk.next_program : index
  %n = ssk.next_program : index
  // CHECK: ssk.prefetch %{{.*}}[%[[NEXT]]] {count = 256 : i64} : !ssk.global<f32>
  ssk.prefetch %rows[%n] {count = 256 : i64} : !ssk.global<f32>
  ssk.return
}

// CHECK-LABEL: ssk.kernel @numbers
ssk.kernel @numbers(%bytes: !ssk.global<f8E4M3FN> {ssk.name = "bytes"}, %n: !ssk.global<i32> {ssk.name = "n"}) {
  %c0 = arith.constant 0 : index
  // CHECK: ssk.iota : !ssk.tile<128xi32, lanes = 0>
  %t = ssk.iota : !ssk.tile<128xi32, lanes = 0>
  ssk.store %t, %n[%c0] : !ssk.tile<128xi32, lanes = 0>, !ssk.global<i32>
  // CHECK: ssk.load %{{.*}} : !ssk.global<f8E4M3FN> -> !ssk.tile<128xf8E4M3FN, lanes = 0>
  %b = ssk.load %bytes[%c0] : !ssk.global<f8E4M3FN> -> !ssk.tile<128xf8E4M3FN, lanes = 0>
  ssk.store %b, %bytes[%c0] : !ssk.tile<128xf8E4M3FN, lanes = 0>, !ssk.global<f8E4M3FN>
  ssk.return
}
