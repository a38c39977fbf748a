// The graph's text form: every operation and attribute, read, printed and read again.
// RUN: ss-opt %s | ss-opt | FileCheck %s
// RUN: ss-opt %s --mlir-print-op-generic | ss-opt | FileCheck %s

// CHECK-LABEL: ss.model @tiny
ss.model @tiny {
  // Default values are not printed.
  // CHECK-NEXT: ss.layer @layer0 type gdn index 0 heads 2 key_heads 1 dv 128 dk 64
  // CHECK-SAME: gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-06> query_scale 1.250000e-01
  // CHECK-SAME: policy #ss.policy<relative, 3.0e-02> active 8 buffer 8 storage f32 form factored
  // CHECK-NOT: beta_scale
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 1 dv 128 dk 64
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
      {beta_scale = 1.0 : f64, draft = 0}
  // CHECK-NEXT: ss.layer @layer1 type kda index 1
  // CHECK-SAME: gate #ss.gate<bounded_channel, -5.0e+00>
  // CHECK-SAME: policy #ss.policy<fixed, 16> active 16 buffer 16
  // CHECK-SAME: {beta_scale = 2.000000e+00 : f64, draft = 4 : i64, kernels = {decode = @f}}
  ss.layer @layer1 type kda index 1 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<bounded_channel, -5> norm #ss.norm<max, 1.0e-12> query_scale 0.0625
      policy #ss.policy<fixed, 16> active 16 buffer 16 storage f32 form factored
      {beta_scale = 2.0 : f64, draft = 4, kernels = {decode = @f}}
  // CHECK-NEXT: ss.layer @layer2 type mamba2 index 3
  // CHECK-SAME: norm #ss.norm<none>
  // CHECK-SAME: policy #ss.policy<energy, 9.99e-01> active 8 buffer 12 core svd storage f16 form dense
  ss.layer @layer2 type mamba2 index 3 heads 4 key_heads 1 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<energy, 0.999> active 8 buffer 12 core svd storage f16 form dense
  // CHECK-NEXT: ss.layer @layer3
  // CHECK-SAME: gate #ss.gate<softplus_channel>
  // CHECK-SAME: policy #ss.policy<budget, 65536> active 4 buffer 6 core qr storage bf16 form factored
  ss.layer @layer3 type kda index 5 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus_channel> norm #ss.norm<add, 1.0e-6> query_scale 0.0625
      policy #ss.policy<budget, 65536> active 4 buffer 6 core qr storage bf16 form factored
  // CHECK-NEXT: ss.layer @layer4
  // CHECK-SAME: storage fp8 rounding stochastic form factored
  ss.layer @layer4 type gdn index 6 heads 2 key_heads 1 dv 128 dk 64
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage fp8 rounding stochastic form factored
  // CHECK-NEXT: ss.schedule period 48 phases [@layer0 = 0, @layer1 = 15, @layer3 = 2, @layer4 = 4] before [@layer3, @layer4]
  ss.schedule period 48 phases [@layer0 = 0, @layer1 = 15, @layer3 = 2, @layer4 = 4] before [@layer3, @layer4]
}

// CHECK-LABEL: ss.model @empty
ss.model @empty {}
