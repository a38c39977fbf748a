// RUN: ss-opt %s --split-input-file --pass-pipeline='builtin.module(ss-expand-layers,func.func(ss-fuse-compaction))' | FileCheck %s
// RUN: ss-opt %s --split-input-file --pass-pipeline='builtin.module(ss-expand-layers,func.func(ss-fuse-compaction{report=true}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// Eight operations become one kernel, and densify one of its own. Saved are, in bytes,
// one of two writes of rows (merge, truncate): 2 * 144 * 1028 = 296064,
// one of two reads of the buffer (split, concat): 16448,
// and the blocks of factors, 1028 * rows each, once written and once per use read:
// active 2 * 8 * 2, block 2 * 16 * 3, bases 2 * 16 * 2, rotated 2 * 16 * 2 rows: 263168.
// CHECK: ss.model @model
ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core svd storage f32 form factored
}
// CHECK-LABEL: func.func @layer0_decode
// CHECK-NOT: ss.fused
// CHECK-LABEL: func.func @layer0_compact
// CHECK-NEXT: %[[OUT:.*]] = ss.fused "compact"(%{{.*}}) : (!state) -> !state {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ss.split
// CHECK-NEXT: ss.concat
// CHECK-NEXT: ss.orthogonalize
// CHECK-NEXT: ss.core
// CHECK-NEXT: ss.core_svd
// CHECK-NEXT: ss.rotate
// CHECK-NEXT: ss.merge
// CHECK-NEXT: %[[KEPT:.*]] = ss.truncate
// CHECK-NEXT: ss.yield %[[KEPT]] : !state
// CHECK-NEXT: }
// CHECK-NEXT: return %[[OUT]]
// CHECK-LABEL: func.func @layer0_densify
// CHECK-NEXT: %[[H:.*]] = ss.fused "densify"
// CHECK: ss.densify
// CHECK: return %[[H]]
// REPORT: remark: @layer0_compact: 8 state operations in 1 kernels, 575680 bytes of state traffic removed
// REPORT: remark: @layer0_densify: 1 state operations in 1 kernels, 0 bytes of state traffic removed

// -----

!S = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>

// What is fused already stays as it is.
// CHECK-LABEL: func.func @twice
// CHECK-COUNT-1: ss.fused
// CHECK-NOT: ss.fused
// REPORT: remark: {{.*}}: 0 state operations in 0 kernels
func.func @twice(%s: !S) -> tensor<2x128x128xf32> attributes {ss.role = "densify"} {
  %h = ss.fused "densify"(%s) : (!S) -> tensor<2x128x128xf32> {
  ^bb0(%state: !S):
    %0 = ss.densify %state : !S -> tensor<2x128x128xf32>
    ss.yield %0 : tensor<2x128x128xf32>
  }
  return %h : tensor<2x128x128xf32>
}
