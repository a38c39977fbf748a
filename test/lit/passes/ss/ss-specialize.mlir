// RUN: ss-opt %s --pass-pipeline='builtin.module(ss-expand-layers,func.func(ss-fuse-decode,ss-fuse-compaction),ss-specialize)' | FileCheck %s
// RUN: ss-opt %s --mlir-print-debuginfo --pass-pipeline='builtin.module(ss-expand-layers,func.func(ss-fuse-decode,ss-fuse-compaction),ss-specialize)' | FileCheck %s --check-prefix=PLACES
// RUN: ss-opt %s --pass-pipeline='builtin.module(ss-expand-layers,func.func(ss-fuse-decode,ss-fuse-compaction),ss-specialize{report=true})' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

ss.model @model {
  // CHECK: ss.layer @layer0
  // CHECK-SAME: kernels = {compact = @[[C:gdn_compact_h2_kh2_128x128_a8_b8_svd_f32_[0-9a-f]+]], decode = @[[D:gdn_decode_h2_kh2_128x128_a8_b8_f32_[0-9a-f]+]], densify = @[[H:gdn_densify_h2_kh2_128x128_a8_b8_f32_[0-9a-f]+]]}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core svd storage f32 form factored
  // Another eps makes no other kernel.
  // CHECK: ss.layer @layer1
  // CHECK-SAME: policy #ss.policy<relative, 1.0e-01>
  // CHECK-SAME: kernels = {compact = @[[C]], decode = @[[D]], densify = @[[H]]}
  ss.layer @layer1 type gdn index 1 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 1.0e-1> active 8 buffer 8 core svd storage f32 form factored
  // Another kind of policy makes another compaction and nothing else.
  // CHECK: ss.layer @layer2
  // CHECK-NOT: compact = @[[C]]
  // CHECK-SAME: kernels = {compact = @[[C2:gdn_compact_h2_kh2_128x128_a8_b8_svd_f32_[0-9a-f]+]], decode = @[[D]], densify = @[[H]]}
  ss.layer @layer2 type gdn index 2 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<energy, 0.999> active 8 buffer 8 core svd storage f32 form factored
  // The scale of queries is only in the decode kernel, beta's too.
  // CHECK: ss.layer @layer3
  // CHECK-NOT: decode = @[[D]]
  // CHECK-SAME: kernels = {compact = @[[C]], decode = @[[D3:gdn_decode_h2_kh2_128x128_a8_b8_f32_[0-9a-f]+]], densify = @[[H]]}
  ss.layer @layer3 type gdn index 3 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.25
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core svd storage f32 form factored
  // CHECK: ss.layer @layer4
  // CHECK-SAME: kernels = {compact = @[[FIXED:gdn_compact_h2_kh2_128x128_a16_b16_d4_svd_f32_[0-9a-f]+]], decode
  ss.layer @layer4 type gdn index 4 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<fixed, 16> active 16 buffer 16 core svd storage f32 form factored {draft = 4}
  // CHECK: ss.layer @layer5
  // CHECK-SAME: kernels = {decode = @mamba2_decode_h4_kh1_80x128_dense_f32_{{[0-9a-f]+}}}
  ss.layer @layer5 type mamba2 index 5 heads 4 key_heads 1 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form dense
  // Another core makes another compaction and nothing else.
  // CHECK: ss.layer @layer6
  // CHECK-SAME: kernels = {compact = @[[QR:gdn_compact_h2_kh2_128x128_a8_b8_qr_f32_[0-9a-f]+]], decode = @[[D]], densify = @[[H]]}
  ss.layer @layer6 type gdn index 6 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core qr storage f32 form factored
  // Without a core a fixed rank is kept by singular values, anything else by the
  // layer type's.
  // CHECK: ss.layer @layer7
  // CHECK-SAME: kernels = {compact = @[[FIXED]], decode
  ss.layer @layer7 type gdn index 7 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<fixed, 16> active 16 buffer 16 storage f32 form factored {draft = 4}
  // CHECK: ss.layer @layer8
  // CHECK-SAME: kernels = {compact = @[[QR]], decode
  ss.layer @layer8 type gdn index 8 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}
// CHECK: func.func @[[D]]({{.*}} attributes {ss.role = "decode"}
// CHECK: func.func @[[C]]
// The shared compaction keeps the policy of its first layer.
// CHECK: ss.truncate {{.*}} policy <relative, 3.0e-02>
// CHECK: func.func @[[H]]
// CHECK: func.func @[[C2]]
// CHECK: func.func @[[D3]]
// CHECK-COUNT-5: func.func
// CHECK-NOT: func.func
// CHECK-NOT: ss.layer =
// REPORT: remark: 25 functions of layers became 10

// Where a layer stands in a file makes no other kernel.
// PLACES: ss.layer @layer0
// PLACES-SAME: decode = @[[D:gdn_decode_h2_kh2_128x128_a8_b8_f32_[0-9a-f]+]]
// PLACES: ss.layer @layer1
// PLACES-SAME: decode = @[[D]]
