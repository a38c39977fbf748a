// RUN: ss-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ss-fuse-decode))' | FileCheck %s
// RUN: ss-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(ss-fuse-decode{report=true}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

!S = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>

// All of a token in one kernel; its operands are in the order of the arguments.
// The delta rule and the readout each read 2 * 144 * (256 * 4 + 4) bytes of rows and
// 4 * 8 * (2 * 128 + 2 * 129) bytes of buffer: one of the two is saved.
// CHECK-LABEL: func.func @token
// CHECK-SAME: (%[[A0:.*]]: !state, %[[A1:.*]]: tensor<2x128xf32>, %[[A2:.*]]: tensor<2x128xf32>, %[[A3:.*]]: tensor<2xf32>, %[[A4:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[R:.*]]:2 = ss.fused "decode"(%[[A0]], %[[A1]], %[[A2]], %[[A3]], %[[A4]]) : (!state, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2xf32>, tensor<2xf32>) -> (!state, tensor<2x128xf32>) {
// CHECK-NEXT: ^bb0(%[[S:.*]]: !state, %[[K:.*]]: tensor<2x128xf32>, %[[V:.*]]: tensor<2x128xf32>, %[[B:.*]]: tensor<2xf32>, %[[G:.*]]: tensor<2xf32>):
// CHECK-NEXT: %[[W:.*]] = ss.write_weight %[[B]]
// CHECK-NEXT: %[[S1:.*]] = ss.decay %[[S]] by %[[G]]
// CHECK-NEXT: %[[S2:.*]] = ss.append %[[S1]], %[[K]], %[[V]] weight %[[W]]
// CHECK-NEXT: %[[Y:.*]] = ss.readout %[[S2]], %[[K]]
// CHECK-NEXT: ss.yield %[[S2]], %[[Y]] : !state, tensor<2x128xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
// REPORT: remark: {{.*}}: 4 state operations in 1 kernels, 312512 bytes of state traffic removed
func.func @token(%s: !S, %k: tensor<2x128xf32>, %v: tensor<2x128xf32>, %b: tensor<2xf32>, %g: tensor<2xf32>)
    -> (!S, tensor<2x128xf32>) attributes {ss.role = "decode"} {
  %w = ss.write_weight %b scale 1.0 : tensor<2xf32>
  %s1 = ss.decay %s by %g : !S, tensor<2xf32>
  %s2 = ss.append %s1, %k, %v weight %w : !S, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2xf32>
  %y = ss.readout %s2, %k : !S, tensor<2x128xf32> -> tensor<2x128xf32>
  return %s2, %y : !S, tensor<2x128xf32>
}

// -----

!S = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>

// A foreign operation between: what it feeds cannot be in the kernel that feeds it.
// CHECK-LABEL: func.func @cut
// CHECK: %[[Y:.*]] = ss.fused "decode"
// CHECK: ss.readout
// CHECK-NOT: ss.readout
// CHECK: ss.yield
// CHECK: %[[Q:.*]] = arith.negf %[[Y]]
// CHECK: ss.fused "decode"(%{{.*}}, %[[Q]])
// CHECK: ss.readout
// REPORT: remark: {{.*}}: 2 state operations in 2 kernels, 0 bytes of state traffic removed
func.func @cut(%s: !S, %q: tensor<2x128xf32>) -> tensor<2x128xf32> attributes {ss.role = "decode"} {
  %y = ss.readout %s, %q : !S, tensor<2x128xf32> -> tensor<2x128xf32>
  %q2 = arith.negf %y : tensor<2x128xf32>
  %y2 = ss.readout %s, %q2 : !S, tensor<2x128xf32> -> tensor<2x128xf32>
  return %y2 : tensor<2x128xf32>
}

// -----

!S = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>

// Foreign operations that the kernel feeds move behind it, those that feed it stay before.
// CHECK-LABEL: func.func @move
// CHECK: %[[Q:.*]] = arith.addf
// CHECK: %[[R:.*]]:2 = ss.fused "decode"(%{{.*}}, %{{.*}}, %[[Q]])
// CHECK: arith.negf %[[R]]#0
// CHECK: return
func.func @move(%s: !S, %q: tensor<2x128xf32>) -> (tensor<2x128xf32>, tensor<2x128xf32>)
    attributes {ss.role = "decode"} {
  %y = ss.readout %s, %q : !S, tensor<2x128xf32> -> tensor<2x128xf32>
  %n = arith.negf %y : tensor<2x128xf32>
  %q2 = arith.addf %q, %q : tensor<2x128xf32>
  %y2 = ss.readout %s, %q2 : !S, tensor<2x128xf32> -> tensor<2x128xf32>
  return %n, %y2 : tensor<2x128xf32>, tensor<2x128xf32>
}

// -----

!D = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>

// A dense state is read and written once instead of twice and twice, and read once more:
// 3 * 2 * 128 * 128 * 4 bytes less.
// CHECK-LABEL: func.func @dense
// CHECK: ss.fused "decode"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ss.decay
// CHECK-NEXT: ss.append
// CHECK-NEXT: ss.readout
// CHECK-NEXT: ss.yield
// REPORT: remark: {{.*}}: 3 state operations in 1 kernels, 393216 bytes of state traffic removed
func.func @dense(%s: !D, %k: tensor<2x128xf32>, %v: tensor<2x128xf32>, %b: tensor<2xf32>, %g: tensor<2xf32>)
    -> (!D, tensor<2x128xf32>) attributes {ss.role = "decode"} {
  %s1 = ss.decay %s by %g : !D, tensor<2xf32>
  %s2 = ss.append %s1, %k, %v weight %b : !D, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2xf32>
  %y = ss.readout %s2, %k : !D, tensor<2x128xf32> -> tensor<2x128xf32>
  return %s2, %y : !D, tensor<2x128xf32>
}

// -----

!S = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>

// Rows of factors do not change between compactions: what writes them stays outside.
// CHECK-LABEL: func.func @writes_rows
// CHECK-NEXT: ss.consolidate
// CHECK-NEXT: ss.fused "decode"
func.func @writes_rows(%s: !S, %q: tensor<2x128xf32>) -> tensor<2x128xf32> attributes {ss.role = "decode"} {
  %c = ss.consolidate %s eps 0.03 : !S
  %y = ss.readout %c, %q : !S, tensor<2x128xf32> -> tensor<2x128xf32>
  return %y : tensor<2x128xf32>
}

// -----

!S = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>

// Other roles, and functions of none, are left alone.
// CHECK-LABEL: func.func @no_role
// CHECK-NOT: ss.fused
func.func @no_role(%s: !S, %q: tensor<2x128xf32>) -> tensor<2x128xf32> {
  %y = ss.readout %s, %q : !S, tensor<2x128xf32> -> tensor<2x128xf32>
  return %y : tensor<2x128xf32>
}
// CHECK-LABEL: func.func @other_role
// CHECK-NOT: ss.fused
func.func @other_role(%s: !S) -> tensor<2x128x128xf32> attributes {ss.role = "densify"} {
  %h = ss.densify %s : !S -> tensor<2x128x128xf32>
  return %h : tensor<2x128x128xf32>
}
