// RUN: ss-opt %s --split-input-file --ss-expand-layers | FileCheck %s
// RUN: ss-opt %s --split-input-file --ss-expand-layers=report=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// The functions of a layer, behind the model.
// CHECK-DAG: ![[S:state[0-9]*]] = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
// CHECK-DAG: ![[C:state[0-9]*]] = !ss.state<kda, heads = 2, key_heads = 2, dv = 64, dk = 128, form = factored, active = 16, buffer = 16, rank = 36, storage = bf16, draft = 4>
// CHECK-DAG: ![[FA:factors[0-9]*]] = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
// CHECK-DAG: ![[FB:factors[0-9]*]] = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
// CHECK: ss.model @model
ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 4 key_heads 2 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core svd storage f32 form factored
      {beta_scale = 2.0 : f64}
  ss.layer @layer1 type kda index 1 heads 2 key_heads 2 dv 64 dk 128
      gate #ss.gate<bounded_channel, -5.0> norm #ss.norm<add, 1.0e-6> query_scale 0.125
      policy #ss.policy<fixed, 16> active 16 buffer 16 core qr storage bf16 form factored {draft = 4}
}
// CHECK: func.func @layer0_decode(
// CHECK-SAME: %[[STATE:[^:]*]]: ![[S]], %[[Q:[^:]*]]: tensor<2x128xf32>, %[[K:[^:]*]]: tensor<2x128xf32>, %[[V:[^:]*]]: tensor<4x80xf32>, %[[GATE:[^:]*]]: tensor<4xf32>, %[[BETA:[^:]*]]: tensor<4xf32>, %[[A:[^:]*]]: tensor<4xf32>, %[[BIAS:[^:]*]]: tensor<4xf32>)
// CHECK-SAME: -> (![[S]], tensor<4x80xf32>) attributes {ss.layer = @layer0, ss.role = "decode"}
// CHECK-NEXT: %[[QN:.*]] = ss.normalize %[[Q]] norm #ss.norm<max, 1.0e-12> scale 1.250000e-01
// CHECK-NEXT: %[[KN:.*]] = ss.normalize %[[K]] norm #ss.norm<max, 1.0e-12> scale 1.000000e+00
// CHECK-NEXT: %[[G:.*]] = ss.log_decay %[[GATE]], %[[A]], %[[BIAS]] gate <softplus>
// CHECK-NEXT: %[[W:.*]] = ss.write_weight %[[BETA]] scale 2.000000e+00
// CHECK-NEXT: %[[S1:.*]] = ss.decay %[[STATE]] by %[[G]]
// CHECK-NEXT: %[[S2:.*]] = ss.append %[[S1]], %[[KN]], %[[V]] weight %[[W]]
// CHECK-NEXT: %[[Y:.*]] = ss.readout %[[S2]], %[[QN]]
// CHECK-NEXT: return %[[S2]], %[[Y]]

// CHECK: func.func @layer0_compact(%[[STATE:.*]]: ![[S]]) -> ![[S]] attributes {ss.layer = @layer0, ss.role = "compact"}
// CHECK-NEXT: %[[ACTIVE:.*]], %[[FROZEN:.*]] = ss.split %[[STATE]] : ![[S]] -> ![[FA]], ![[S]]
// CHECK-NEXT: %[[BLOCK:.*]] = ss.concat %[[ACTIVE]], %[[FROZEN]] : ![[FA]], ![[S]] -> ![[FB]]
// CHECK-NEXT: %[[BASIS:.*]], %[[L:.*]], %[[R:.*]] = ss.orthogonalize %[[BLOCK]] : ![[FB]] -> ![[FB]], tensor<4x16x16xf64>, tensor<4x16x16xf64>
// CHECK-NEXT: %[[CORE:.*]] = ss.core %[[L]], %[[BLOCK]], %[[R]]
// CHECK-NEXT: %[[X:.*]], %[[SIGMA:.*]], %[[Y:.*]] = ss.core_svd %[[CORE]]
// CHECK-NEXT: %[[ROTATED:.*]] = ss.rotate %[[BASIS]], %[[X]], %[[SIGMA]], %[[Y]]
// CHECK-NEXT: %[[MERGED:.*]] = ss.merge %[[ROTATED]], %[[FROZEN]]
// CHECK-NEXT: %[[KEPT:.*]] = ss.truncate %[[MERGED]] policy <relative, 3.0e-02>
// CHECK-NEXT: return %[[KEPT]]

// CHECK: func.func @layer0_densify(%[[STATE:.*]]: ![[S]]) -> tensor<4x128x80xf32> attributes {ss.layer = @layer0, ss.role = "densify"}
// CHECK-NEXT: %[[H:.*]] = ss.densify %[[STATE]]
// CHECK-NEXT: return %[[H]]

// A channel gate takes one input and one bias per key channel; draft rows join the block.
// CHECK: func.func @layer1_decode(%{{.*}}: ![[C]], %{{.*}}: tensor<2x128xf32>, %{{.*}}: tensor<2x128xf32>, %{{.*}}: tensor<2x64xf32>, %{{.*}}: tensor<2x128xf32>, %{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2x128xf32>)
// CHECK: ss.log_decay {{.*}} gate <bounded_channel, -5.0e+00> : (tensor<2x128xf32>, tensor<2xf32>, tensor<2x128xf32>) -> tensor<2x128xf32>
// CHECK: func.func @layer1_compact
// CHECK: %[[BLOCK:.*]] = ss.concat
// CHECK-NEXT: %[[RIGHT:.*]] = ss.orthogonalize_side %[[BLOCK]] side right : ![[FC:factors[0-9]*]]
// CHECK-NEXT: %[[LEFT:.*]] = ss.orthogonalize_side %[[RIGHT]] side left : ![[FC]]
// CHECK-NEXT: ss.merge %[[LEFT]]
// CHECK: ss.truncate {{.*}} policy <fixed, 16>
// REPORT: remark: made 6 functions for 2 layers

// -----

// mamba2 has no beta: the weight is the time step.
// CHECK: ss.model @mamba
ss.model @mamba {
  ss.layer @layer3 type mamba2 index 3 heads 4 key_heads 1 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<energy, 0.999> active 8 buffer 12 storage f32 form dense
}
// A dense layer is decoded and nothing else.
// CHECK: func.func @layer3_decode(%{{.*}}: !state, %{{.*}}: tensor<1x128xf32>, %{{.*}}: tensor<1x128xf32>, %{{.*}}: tensor<4x80xf32>, %[[DT:[^:]*]]: tensor<4xf32>, %[[A:[^:]*]]: tensor<4xf32>, %[[BIAS:[^:]*]]: tensor<4xf32>)
// CHECK: ss.log_decay %[[DT]], %[[A]], %[[BIAS]]
// CHECK: ss.time_step %[[DT]], %[[BIAS]] : tensor<4xf32>
// CHECK-NOT: func.func

// -----

// Without layers there is nothing to do.
// CHECK: ss.model @empty
// CHECK-NOT: func.func
ss.model @empty {}
