// The state operations: read, printed and read again.
// RUN: ss-opt %s | ss-opt | FileCheck %s
// RUN: ss-opt %s --mlir-print-op-generic | ss-opt | FileCheck %s

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 4, buffer = 8, rank = 95, storage = bf16, draft = 3>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>

// CHECK-DAG: !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
// CHECK-DAG: !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
// CHECK-DAG: !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 4, buffer = 8, rank = 95, storage = bf16, draft = 3>
// CHECK-DAG: !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = fp8, rounding = stochastic>
func.func private @random(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = fp8, rounding = stochastic>)

// CHECK-LABEL: func.func @decode
// CHECK-SAME: ss.layer = @layer0, ss.role = "decode"
func.func @decode(%state: !S, %q: tensor<2x128xf32>, %k: tensor<2x128xf32>, %v: tensor<4x80xf32>,
                  %gate: tensor<4xf32>, %beta: tensor<4xf32>, %a_log: tensor<4xf32>,
                  %dt_bias: tensor<4xf32>) -> (!S, tensor<4x80xf32>)
    attributes {ss.layer = @layer0, ss.role = "decode"} {
  // CHECK-NEXT: ss.normalize %{{.*}} norm #ss.norm<max, 1.0e-12> scale 1.250000e-01 : tensor<2x128xf32>
  %qn = ss.normalize %q norm #ss.norm<max, 1.0e-12> scale 0.125 : tensor<2x128xf32>
  %kn = ss.normalize %k norm #ss.norm<none> scale 1.0 : tensor<2x128xf32>
  // CHECK: ss.log_decay %{{.*}}, %{{.*}}, %{{.*}} gate <softplus> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = ss.log_decay %gate, %a_log, %dt_bias gate <softplus> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: ss.write_weight %{{.*}} scale 2.000000e+00 : tensor<4xf32>
  %w = ss.write_weight %beta scale 2.0 : tensor<4xf32>
  // CHECK: ss.decay %{{.*}} by %{{.*}} : !state{{.*}}, tensor<4xf32>
  %s1 = ss.decay %state by %g : !S, tensor<4xf32>
  // CHECK: ss.append %{{.*}}, %{{.*}}, %{{.*}} weight %{{.*}} : !state{{.*}}, tensor<2x128xf32>, tensor<4x80xf32>, tensor<4xf32>
  %s2 = ss.append %s1, %kn, %v weight %w : !S, tensor<2x128xf32>, tensor<4x80xf32>, tensor<4xf32>
  // CHECK: ss.readout %{{.*}}, %{{.*}} : !state{{.*}}, tensor<2x128xf32> -> tensor<4x80xf32>
  %y = ss.readout %s2, %qn : !S, tensor<2x128xf32> -> tensor<4x80xf32>
  return %s2, %y : !S, tensor<4x80xf32>
}

// CHECK-LABEL: func.func @channel_gate
func.func @channel_gate(%state: !C, %gate: tensor<4x128xf32>, %a_log: tensor<4xf32>,
                        %bias: tensor<4x128xf32>, %dt: tensor<4xf32>, %dt_bias: tensor<4xf32>)
    -> (!C, tensor<4xf32>) {
  // CHECK: ss.log_decay {{.*}} gate <bounded_channel, -5.0e+00> : (tensor<4x128xf32>, tensor<4xf32>, tensor<4x128xf32>) -> tensor<4x128xf32>
  %g = ss.log_decay %gate, %a_log, %bias gate <bounded_channel, -5.0> : (tensor<4x128xf32>, tensor<4xf32>, tensor<4x128xf32>) -> tensor<4x128xf32>
  %s = ss.decay %state by %g : !C, tensor<4x128xf32>
  // CHECK: ss.time_step %{{.*}}, %{{.*}} : tensor<4xf32>
  %w = ss.time_step %dt, %dt_bias : tensor<4xf32>
  return %s, %w : !C, tensor<4xf32>
}

// CHECK-LABEL: func.func @compact
func.func @compact(%state: !S) -> !S {
  // CHECK: ss.split
  %active, %frozen = ss.split %state : !S -> !A, !S
  // CHECK: ss.concat
  %block = ss.concat %active, %frozen : !A, !S -> !F
  // CHECK: ss.orthogonalize
  %q, %rl, %rr = ss.orthogonalize %block : !F -> !F, tensor<4x16x16xf64>, tensor<4x16x16xf64>
  // CHECK: ss.core %
  %core = ss.core %rl, %block, %rr : tensor<4x16x16xf64>, !F, tensor<4x16x16xf64> -> tensor<4x16x16xf64>
  // CHECK: ss.core_svd %{{.*}} : tensor<4x16x16xf64> -> tensor<4x16x16xf64>, tensor<4x16xf64>, tensor<4x16x16xf64>
  %x, %sigma, %y = ss.core_svd %core : tensor<4x16x16xf64> -> tensor<4x16x16xf64>, tensor<4x16xf64>, tensor<4x16x16xf64>
  // CHECK: ss.rotate
  %rotated = ss.rotate %q, %x, %sigma, %y : !F, tensor<4x16x16xf64>, tensor<4x16xf64>, tensor<4x16x16xf64>
  // CHECK: ss.orthogonalize_side %{{.*}} side right : !factors
  %side = ss.orthogonalize_side %block side right : !F
  // CHECK: ss.merge
  %merged = ss.merge %rotated, %frozen : !F, !S
  // CHECK: ss.truncate %{{.*}} policy <relative, 3.0e-02> : !state
  %out = ss.truncate %merged policy <relative, 3.0e-2> : !S
  return %out : !S
}

// CHECK-LABEL: func.func @convert
func.func @convert(%dense: tensor<4x80x128xf32>) -> (tensor<4x128x80xf32>, !D) {
  // CHECK: ss.init %{{.*}} eps 3.000000e-02 : tensor<4x80x128xf32> -> !state
  %0 = ss.init %dense eps 0.03 : tensor<4x80x128xf32> -> !S
  // CHECK: ss.consolidate %{{.*}} eps 0.000000e+00 : !state
  %1 = ss.consolidate %0 eps 0.0 : !S
  // CHECK: ss.fused "densify"(%{{.*}}) : (!state{{.*}}) -> tensor<4x128x80xf32>
  %2 = ss.fused "densify"(%1) : (!S) -> (tensor<4x128x80xf32>) {
  ^bb0(%s: !S):
    // CHECK: ss.densify %{{.*}} : !state{{.*}} -> tensor<4x128x80xf32>
    %h = ss.densify %s : !S -> tensor<4x128x80xf32>
    // CHECK: ss.yield %{{.*}} : tensor<4x128x80xf32>
    ss.yield %h : tensor<4x128x80xf32>
  }
  %3 = ss.init %dense eps 0.03 : tensor<4x80x128xf32> -> !D
  return %2, %3 : tensor<4x128x80xf32>, !D
}
