// Rows of 16 bits: memory has the storage, tiles are widened and rounded by maps,
// and only what is not converted is copied asynchronously.
// RUN: ss-opt --ss-pipeline %s | FileCheck %s
// RUN: ss-opt --ss-pipeline %s | ss-translate --ssk-to-cuda | FileCheck %s --check-prefix=CUDA

ss.model @model {
  ss.layer @layer type gdn index 0 heads 2 key_heads 1 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core qr storage f16 form factored
  ss.layer @dense type gdn index 1 heads 2 key_heads 1 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core qr storage bf16 form dense
}

// CHECK: ssk.kernel @[[DECODE:gdn_decode_h2_kh1_128x128_a8_b8_f16_[0-9a-f]+]](%[[ROWS:.*]]: !ssk.global<f16> {ssk.name = "rows"}, %{{.*}}: !ssk.global<f32> {ssk.name = "weights"}
// CHECK: %[[T:.*]] = ssk.load %[[ROWS]][{{.*}}] stride %{{.*}} {vector = 4 : i64} : !ssk.global<f16> -> !ssk.tile<4x128xf16, lanes = 1>
// CHECK-NEXT: ssk.map (%[[T]]) dims {{\[\[}}0, 1]] : (!ssk.tile<4x128xf16, lanes = 1>) -> !ssk.tile<4x128xf32, lanes = 1>
// CHECK: arith.extf %{{.*}} : f16 to f32

// CHECK: ssk.kernel @gdn_compact_h2_kh1_128x128_a8_b8_qr_f16
// Active rows are read under no condition, where there is a row; absent ones are zero.
// CHECK: scf.if
// CHECK: ssk.load %arg0[%{{[0-9]+}}] {vector = 4 : i64} : !ssk.global<f16> -> !ssk.tile<128xf16, lanes = 0>
// CHECK: arith.select %{{.*}} : f32
// CHECK: } else {
// CHECK: ssk.store %{{.*}} : !ssk.tile<128xf32, lanes = 0>, !ssk.shared<16x128xf32>
// CHECK: ssk.copy %{{.*}} : !ssk.global<f32>
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: ssk.store %{{.*}} : !ssk.tile<128xf16, lanes = 0>, !ssk.global<f16>

// A matrix that stays in the pool is rounded; `out` has f32.
// CHECK: ssk.kernel @gdn_densify_h2_kh1_128x128_a8_b8_f16{{.*}}(%[[POOL:.*]]: !ssk.global<f16> {ssk.name = "rows"}{{.*}}: !ssk.global<f32> {ssk.name = "out"}
// CHECK: ssk.store %{{.*}}, %[[POOL]]{{.*}}, !ssk.global<f16>
// CHECK: } else {
// CHECK: ssk.store {{.*}}, !ssk.global<f32>

// CHECK: ssk.kernel @gdn_decode{{.*}}bf16{{.*}}(%[[DENSE:.*]]: !ssk.global<bf16> {ssk.name = "dense"}
// CHECK: ssk.store %{{.*}}, %[[DENSE]]

// CUDA: ss::half *__restrict__ rows
// CUDA: ss::load_rows<uint2, 128>(
// CUDA: ss::widen(
