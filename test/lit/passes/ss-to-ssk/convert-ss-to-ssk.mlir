// RUN: ss-opt --convert-ss-to-ssk=rows-in-flight=4 --canonicalize --cse %s | FileCheck %s

// A delta-rule decode: both products in one pass over the rows, four at a time,
// of which the last are masked; the new pair is applied without reading anything
// again.
// CHECK-LABEL: ssk.kernel @gdn_factored_decode
// CHECK-SAME: {ssk.name = "rows"}
// CHECK-SAME: {ssk.divisible_by = 4 : i64, ssk.name = "y_stride"}
// CHECK-SAME: role = "decode"
// The program is the caller's order's, where there is one.
// CHECK: %[[PLACE:.*]] = scf.if
// CHECK-NEXT: ssk.read %{{.*}} : !ssk.global<i32>
// CHECK: %[[ROW:.*]] = arith.divsi %[[PLACE]]
// CHECK: %[[SLOT32:.*]] = ssk.read %{{.*}} : !ssk.global<i32>
// CHECK: %[[SLOT:.*]] = arith.index_cast %[[SLOT32]]
// CHECK: %[[PAD:.*]] = arith.cmpi slt, %[[SLOT]]
// CHECK: scf.if %[[PAD]]
// CHECK-NEXT: ssk.splat
// CHECK: } else {
// CHECK: ssk.dot
// CHECK: math.sqrt
// Four parts take chunks of rows in turn: dense ones, whose coefficients are in
// scratch before, or components.
// CHECK: ssk.store %{{.*}}, %{{.*}} : !ssk.tile<128xf32, lanes = 0>, !ssk.shared<128xf32>
// CHECK: ssk.parts 4
// CHECK-NEXT: ^bb0(%[[PART:.*]]: index):
// Dense rows:
// CHECK: ssk.load %{{.*}} stride %{{.*}} : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
// CHECK: ssk.accumulate
// CHECK: ssk.accumulate
// Components: one load of [v] and one of [u] for both products.
// CHECK: %[[START:.*]] = arith.muli %[[PART]], %c4
// CHECK: scf.for %[[I:.*]] = %[[START]] to %[[RANK:.*]] step %c16
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %[[RANK]], %[[I]] : index
// CHECK: %[[V:.*]] = ssk.load %arg0[{{.*}}] stride %{{.*}} limit %[[LEFT]] : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
// CHECK: %[[U:.*]] = ssk.load %arg0[{{.*}}] stride %{{.*}} limit %[[LEFT]] : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
// CHECK: ssk.dot %[[V]],
// CHECK: ssk.accumulate %{{.*}}, %{{.*}}, %[[U]]
// CHECK: ssk.dot %[[V]],
// CHECK: ssk.accumulate %{{.*}}, %{{.*}}, %[[U]]
// CHECK-NEXT: scf.yield
// CHECK-NOT: ssk.load
// CHECK: ssk.yield_part
// The last one goes on with the pairs.
// CHECK-NEXT: } last {
// CHECK: ssk.load %arg6[{{.*}}] stride %{{.*}} limit %{{.*}} : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
// CHECK: ssk.yield_part
// The pair and its running log-decay; one head of a group writes the key.
// CHECK: ssk.store %{{.*}}, %arg7
// CHECK: ssk.write %{{.*}}, %arg8
// CHECK: scf.if
// CHECK-NEXT: arith.muli
// CHECK: ssk.store %{{.*}}, %arg6
// CHECK: math.fma
// CHECK: ssk.store %{{.*}}, %arg22
// CHECK: ssk.return
func.func @gdn_factored_decode(%state: !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, %q: tensor<16x128xf32>, %k: tensor<16x128xf32>, %v: tensor<32x128xf32>, %gate: tensor<32xf32>, %beta: tensor<32xf32>, %a_log: tensor<32xf32>, %dt_bias: tensor<32xf32>) -> (!ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<32x128xf32>) attributes {ss.role = "decode"} {
  %r:2 = ss.fused "decode"(%state, %q, %k, %v, %gate, %beta, %a_log, %dt_bias) : (!ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<16x128xf32>, tensor<16x128xf32>, tensor<32x128xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) -> (!ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<32x128xf32>) {
  ^bb0(%state_: !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, %q_: tensor<16x128xf32>, %k_: tensor<16x128xf32>, %v_: tensor<32x128xf32>, %gate_: tensor<32xf32>, %beta_: tensor<32xf32>, %a_log_: tensor<32xf32>, %dt_bias_: tensor<32xf32>):
    %qn = ss.normalize %q_ norm #ss.norm<add, 1.0e-06> scale 0.088388347648318447 : tensor<16x128xf32>
    %kn = ss.normalize %k_ norm #ss.norm<add, 1.0e-06> scale 1.0 : tensor<16x128xf32>
    %g = ss.log_decay %gate_, %a_log_, %dt_bias_ gate <softplus> : (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    %w = ss.write_weight %beta_ scale 1.0 : tensor<32xf32>
    %s1 = ss.decay %state_ by %g : !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<32xf32>
    %s2 = ss.append %s1, %kn, %v_ weight %w : !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<16x128xf32>, tensor<32x128xf32>, tensor<32xf32>
    %y = ss.readout %s2, %qn : !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<16x128xf32> -> tensor<32x128xf32>
    ss.yield %s2, %y : !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<32x128xf32>
  }
  return %r#0, %r#1 : !ss.state<gdn, heads = 32, key_heads = 16, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<32x128xf32>
}

// Decays by channel multiply the keys; the running sum is a tile.
// CHECK-LABEL: ssk.kernel @kda_factored_decode
// CHECK: ssk.load %arg8[{{.*}}] stride %{{.*}} limit %{{.*}} : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
// CHECK: ssk.map ({{.*}}) dims {{\[\[}}0, 1], [0, 1], [1]]
// CHECK: arith.subf
// CHECK-NEXT: math.exp
// CHECK: ssk.store %{{.*}}, %arg8
func.func @kda_factored_decode(%state: !ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, %q: tensor<2x128xf32>, %k: tensor<2x128xf32>, %v: tensor<2x128xf32>, %gate: tensor<2x128xf32>, %beta: tensor<2xf32>, %a_log: tensor<2xf32>, %dt_bias: tensor<2x128xf32>) -> (!ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32>) attributes {ss.role = "decode"} {
  %r:2 = ss.fused "decode"(%state, %q, %k, %v, %gate, %beta, %a_log, %dt_bias) : (!ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x128xf32>) -> (!ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32>) {
  ^bb0(%state_: !ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, %q_: tensor<2x128xf32>, %k_: tensor<2x128xf32>, %v_: tensor<2x128xf32>, %gate_: tensor<2x128xf32>, %beta_: tensor<2xf32>, %a_log_: tensor<2xf32>, %dt_bias_: tensor<2x128xf32>):
    %qn = ss.normalize %q_ norm #ss.norm<add, 1.0e-06> scale 0.088388347648318447 : tensor<2x128xf32>
    %kn = ss.normalize %k_ norm #ss.norm<add, 1.0e-06> scale 1.0 : tensor<2x128xf32>
    %g = ss.log_decay %gate_, %a_log_, %dt_bias_ gate <bounded_channel, -5.0> : (tensor<2x128xf32>, tensor<2xf32>, tensor<2x128xf32>) -> tensor<2x128xf32>
    %w = ss.write_weight %beta_ scale 1.0 : tensor<2xf32>
    %s1 = ss.decay %state_ by %g : !ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32>
    %s2 = ss.append %s1, %kn, %v_ weight %w : !ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2xf32>
    %y = ss.readout %s2, %qn : !ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32> -> tensor<2x128xf32>
    ss.yield %s2, %y : !ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32>
  }
  return %r#0, %r#1 : !ss.state<kda, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32>
}

// Without the delta rule one product is enough, and no beta is taken.
// CHECK-LABEL: ssk.kernel @mamba2_factored_decode
// CHECK-NOT: ssk.name = "beta"
// CHECK: %[[V:.*]] = ssk.load %arg0[{{.*}}] stride %{{.*}} limit %{{.*}} : !ssk.global<f32> -> !ssk.tile<8x128xf32, lanes = 1>
// CHECK: %[[U:.*]] = ssk.load %arg0[{{.*}}] stride %{{.*}} limit %{{.*}} : !ssk.global<f32> -> !ssk.tile<8x80xf32, lanes = 1>
// CHECK: ssk.accumulate %{{.*}}, %{{.*}}, %[[U]]
// CHECK-NEXT: scf.yield
// Pairs, four at a time.
// CHECK: ssk.load %arg6[{{.*}}] stride %{{.*}} limit %{{.*}} : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
func.func @mamba2_factored_decode(%state: !ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, %q: tensor<8x128xf32>, %k: tensor<8x128xf32>, %v: tensor<96x80xf32>, %gate: tensor<96xf32>, %a_log: tensor<96xf32>, %dt_bias: tensor<96xf32>) -> (!ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<96x80xf32>) attributes {ss.role = "decode"} {
  %r:2 = ss.fused "decode"(%state, %q, %k, %v, %gate, %a_log, %dt_bias) : (!ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<8x128xf32>, tensor<8x128xf32>, tensor<96x80xf32>, tensor<96xf32>, tensor<96xf32>, tensor<96xf32>) -> (!ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<96x80xf32>) {
  ^bb0(%state_: !ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, %q_: tensor<8x128xf32>, %k_: tensor<8x128xf32>, %v_: tensor<96x80xf32>, %gate_: tensor<96xf32>, %a_log_: tensor<96xf32>, %dt_bias_: tensor<96xf32>):
    %qn = ss.normalize %q_ norm #ss.norm<none> scale 1.000000e+00 : tensor<8x128xf32>
    %kn = ss.normalize %k_ norm #ss.norm<none> scale 1.0 : tensor<8x128xf32>
    %g = ss.log_decay %gate_, %a_log_, %dt_bias_ gate <softplus> : (tensor<96xf32>, tensor<96xf32>, tensor<96xf32>) -> tensor<96xf32>
    %w = ss.time_step %gate_, %dt_bias_ : tensor<96xf32>
    %s1 = ss.decay %state_ by %g : !ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<96xf32>
    %s2 = ss.append %s1, %kn, %v_ weight %w : !ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<8x128xf32>, tensor<96x80xf32>, tensor<96xf32>
    %y = ss.readout %s2, %qn : !ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<8x128xf32> -> tensor<96x80xf32>
    ss.yield %s2, %y : !ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<96x80xf32>
  }
  return %r#0, %r#1 : !ss.state<mamba2, heads = 96, key_heads = 8, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<96x80xf32>
}

// A dense layer reads, updates and writes every row once.
// CHECK-LABEL: ssk.kernel @gdn_dense_decode
// CHECK-SAME: {ssk.name = "dense"}
// CHECK: scf.for
// CHECK: ssk.load %arg0[{{.*}}] stride %{{.*}} : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
// CHECK: ssk.dot
// CHECK: math.fma
// CHECK: ssk.store %{{.*}}, %arg0
// CHECK: ssk.dot
// CHECK: ssk.store %{{.*}} : !ssk.tile<4xf32>, !ssk.global<f32>
func.func @gdn_dense_decode(%state: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, %q: tensor<2x128xf32>, %k: tensor<2x128xf32>, %v: tensor<2x128xf32>, %gate: tensor<2xf32>, %beta: tensor<2xf32>, %a_log: tensor<2xf32>, %dt_bias: tensor<2xf32>) -> (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, tensor<2x128xf32>) attributes {ss.role = "decode"} {
  %r:2 = ss.fused "decode"(%state, %q, %k, %v, %gate, %beta, %a_log, %dt_bias) : (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, tensor<2x128xf32>) {
  ^bb0(%state_: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, %q_: tensor<2x128xf32>, %k_: tensor<2x128xf32>, %v_: tensor<2x128xf32>, %gate_: tensor<2xf32>, %beta_: tensor<2xf32>, %a_log_: tensor<2xf32>, %dt_bias_: tensor<2xf32>):
    %qn = ss.normalize %q_ norm #ss.norm<add, 1.0e-06> scale 0.088388347648318447 : tensor<2x128xf32>
    %kn = ss.normalize %k_ norm #ss.norm<add, 1.0e-06> scale 1.0 : tensor<2x128xf32>
    %g = ss.log_decay %gate_, %a_log_, %dt_bias_ gate <softplus> : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %w = ss.write_weight %beta_ scale 1.0 : tensor<2xf32>
    %s1 = ss.decay %state_ by %g : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, tensor<2xf32>
    %s2 = ss.append %s1, %kn, %v_ weight %w : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, tensor<2x128xf32>, tensor<2x128xf32>, tensor<2xf32>
    %y = ss.readout %s2, %qn : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, tensor<2x128xf32> -> tensor<2x128xf32>
    ss.yield %s2, %y : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, tensor<2x128xf32>
  }
  return %r#0, %r#1 : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>, tensor<2x128xf32>
}

// CHECK-LABEL: ssk.kernel @gdn_relative_compact
// CHECK: ssk.read %{{.*}} : !ssk.global<i32>
// CHECK: ssk.top_k
// CHECK: ssk.matmul %[[A:.*]], %[[A]] into %{{.*}} {transpose_b}
// CHECK: ssk.call @ss_orthogonalize
// CHECK: ssk.matmul %[[B:.*]], %[[B]] into %{{.*}} {transpose_b}
// CHECK: ssk.call @ss_orthogonalize
// CHECK: ssk.call @ss_core_svd
// CHECK: ssk.matmul %{{.*}} : !ssk.shared<16x16xf64>, !ssk.shared<16x128xf32>, !ssk.shared<16x128xf32>
// CHECK: ssk.reduce max
// CHECK: ssk.write %{{.*}}, %arg3
// CHECK-LABEL: ssk.kernel @gdn_relative_densify
// CHECK-SAME: ssk.may_alias
// CHECK: ssk.store %{{.*}} stride %{{.*}} : !ssk.tile<4x128xf32, lanes = 1>, !ssk.global<f32>
// CHECK: } {ssk.independent}
func.func @gdn_relative_compact(%state: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) -> !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32> attributes {ss.role = "compact"} {
  %r = ss.fused "compact"(%state) : (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) -> (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) {
  ^bb0(%s: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>):
    %active, %frozen = ss.split %s : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32> -> !ss.factors<heads = 2, rows = 8, dv = 128, dk = 128>, !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
    %block = ss.concat %active, %frozen : !ss.factors<heads = 2, rows = 8, dv = 128, dk = 128>, !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32> -> !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>
    %q, %rl, %rr = ss.orthogonalize %block : !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128> -> !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>, tensor<2x16x16xf64>, tensor<2x16x16xf64>
    %core = ss.core %rl, %block, %rr : tensor<2x16x16xf64>, !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>, tensor<2x16x16xf64> -> tensor<2x16x16xf64>
    %x, %sigma, %y = ss.core_svd %core : tensor<2x16x16xf64> -> tensor<2x16x16xf64>, tensor<2x16xf64>, tensor<2x16x16xf64>
    %rot = ss.rotate %q, %x, %sigma, %y : !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>, tensor<2x16x16xf64>, tensor<2x16xf64>, tensor<2x16x16xf64>
    %merged = ss.merge %rot, %frozen : !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>, !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
    %out = ss.truncate %merged policy <relative, 3.0e-2> : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
    ss.yield %out : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
  }
  return %r : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
}
func.func @gdn_relative_densify(%state: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) -> tensor<2x128x128xf32> attributes {ss.role = "densify"} {
  %r = ss.fused "densify"(%state) : (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) -> (tensor<2x128x128xf32>) {
  ^bb0(%s: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>):
    %h = ss.densify %s : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32> -> tensor<2x128x128xf32>
    ss.yield %h : tensor<2x128x128xf32>
  }
  return %r : tensor<2x128x128xf32>
}
