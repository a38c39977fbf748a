// RUN: ss-opt %s -canonicalize -cse | FileCheck %s

// Loads are shared unless something is written between them; scratch is never
// shared; values that nothing uses go away, stores and calls stay.
// CHECK-LABEL: ssk.kernel @memory
ssk.kernel @memory(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"},
                   %m: i32 {ssk.name = "m"}) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[S:.*]] = ssk.alloc
  // CHECK: %[[T:.*]] = ssk.alloc
  // CHECK-NOT: ssk.alloc
  %s = ssk.alloc : !ssk.shared<4x4xf64>
  %t = ssk.alloc : !ssk.shared<4x4xf64>
  %unused = ssk.alloc : !ssk.shared<4x4xf64>
  // CHECK: %[[X:.*]] = ssk.load
  // CHECK-NOT: ssk.load
  // CHECK: ssk.store %[[X]]
  // CHECK: ssk.store %[[X]]
  %x = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<8xf32, lanes = 0>
  %y = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<8xf32, lanes = 0>
  %dead = ssk.read %a[%c0] : !ssk.global<f32>
  ssk.store %x, %b[%c0] : !ssk.tile<8xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %y, %b[%c0] : !ssk.tile<8xf32, lanes = 0>, !ssk.global<f32>
  // CHECK: %[[Z:.*]] = ssk.load
  // CHECK: ssk.store %[[Z]]
  %z = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<8xf32, lanes = 0>
  ssk.store %z, %b[%c0] : !ssk.tile<8xf32, lanes = 0>, !ssk.global<f32>
  // CHECK: ssk.sync
  ssk.sync
  // CHECK: ssk.call @ss_orthogonalize(%{{.*}}, %[[S]], %[[T]])
  %status = ssk.call @ss_orthogonalize(%m, %s, %t) reads [1] writes [1, 2] : (i32, !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>) -> i32
  // CHECK: ssk.matmul
  ssk.matmul %s, %s into %t : !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>
  ssk.return
}

// A limit that excludes nothing is dropped, another one stays.
// CHECK-LABEL: ssk.kernel @limits
ssk.kernel @limits(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"}) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c3 = arith.constant 3 : index
  // CHECK: ssk.load %{{.*}}[%{{.*}}] : !ssk.global<f32> -> !ssk.tile<4x8xf32, lanes = 1>
  %x = ssk.load %a[%c0] limit %c4 : !ssk.global<f32> -> !ssk.tile<4x8xf32, lanes = 1>
  // CHECK: ssk.store %{{.*}}, %{{.*}}[%{{.*}}] limit %{{.*}} : !ssk.tile<4x8xf32, lanes = 1>, !ssk.global<f32>
  ssk.store %x, %b[%c0] limit %c3 : !ssk.tile<4x8xf32, lanes = 1>, !ssk.global<f32>
  // CHECK: ssk.store %{{.*}}, %{{.*}}[%{{.*}}] : !ssk.tile<4x8xf32, lanes = 1>, !ssk.global<f32>
  ssk.store %x, %b[%c0] limit %c4 : !ssk.tile<4x8xf32, lanes = 1>, !ssk.global<f32>
  ssk.return
}

// Equal maps are computed once.
// CHECK-LABEL: ssk.kernel @maps
ssk.kernel @maps(%a: !ssk.global<f32> {ssk.name = "a"}) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %x = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<8xf32, lanes = 0>
  // CHECK: %[[Y:.*]] = ssk.map
  // CHECK-NOT: ssk.map
  %y = ssk.map (%x) dims [[0]] : (!ssk.tile<8xf32, lanes = 0>) -> !ssk.tile<8xf32, lanes = 0> {
  ^bb0(%e: f32):
    %f = arith.mulf %e, %e : f32
    ssk.yield %f : f32
  }
  %z = ssk.map (%x) dims [[0]] : (!ssk.tile<8xf32, lanes = 0>) -> !ssk.tile<8xf32, lanes = 0> {
  ^bb0(%e: f32):
    %f = arith.mulf %e, %e : f32
    ssk.yield %f : f32
  }
  // CHECK: ssk.store %[[Y]]
  // CHECK: ssk.store %[[Y]]
  ssk.store %y, %a[%c0] : !ssk.tile<8xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %z, %a[%c8] : !ssk.tile<8xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}
