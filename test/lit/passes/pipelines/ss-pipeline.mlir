// RUN: ss-opt --ss-pipeline %s | FileCheck %s
// RUN: ss-opt --ss-pipeline="rows-in-flight=1 programs-per-block=2" %s | FileCheck %s --check-prefix=CPU
// RUN: ss-opt --ss-graph-pipeline %s | FileCheck %s --check-prefix=GRAPH

// Equal layers share their kernels: three for the two gdn layers, three for the
// mamba2 layer, one for the dense layer.
// CHECK: ss.layer @layer0 {{.*}}kernels = {compact = @[[COMPACT:[a-z0-9_]*]], decode = @[[DECODE:[a-z0-9_]*]], densify = @[[DENSIFY:[a-z0-9_]*]]}
// CHECK: ss.layer @layer2 {{.*}}kernels = {compact = @[[COMPACT]], decode = @[[DECODE]], densify = @[[DENSIFY]]}
// CHECK: ss.schedule
// CHECK-COUNT-7: ssk.kernel @
// CHECK-NOT: ssk.kernel @
// CHECK-NOT: func.func

// CPU: programs_per_block = 2
// CPU: !ssk.tile<1x128xf32, lanes = 1>

// GRAPH-COUNT-7: ss.fused
// GRAPH-NOT: ss.fused

ss.model @hybrid {
  ss.layer @layer0 type gdn index 0 heads 32 key_heads 16 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.08838834764831845
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  ss.layer @layer1 type mamba2 index 1 heads 96 key_heads 8 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<energy, 0.999> active 8 buffer 16 storage f32 form factored
  ss.layer @layer2 type gdn index 2 heads 32 key_heads 16 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.08838834764831845
      policy #ss.policy<relative, 1.0e-2> active 8 buffer 8 storage f32 form factored
  ss.layer @layer3 type kda index 3 heads 32 key_heads 32 dv 128 dk 128
      gate #ss.gate<bounded_channel, -5.0> norm #ss.norm<add, 1.0e-6> query_scale 0.08838834764831845
      policy #ss.policy<relative, 1.0e-2> active 8 buffer 8 storage f32 form dense
}
