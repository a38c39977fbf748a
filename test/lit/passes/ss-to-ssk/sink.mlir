// A layer of form sink: decode reads the sink like every component; compaction moves
// what the block has of the mean value to it and truncates the rest.
// RUN: ss-opt --ss-pipeline %s | FileCheck %s

ss.model @model {
  ss.layer @layer type gdn index 0 heads 2 key_heads 1 dv 64 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<fixed, 16> active 16 buffer 16 core svd storage f32 form sink
}

// CHECK: ss.layer @layer {{.*}} form sink
// CHECK: ssk.kernel @gdn_decode_h2_kh1_64x128_a16_b16_sink_f32
// CHECK-NOT: ssk.name = "sink"
// CHECK: ssk.kernel @gdn_compact_h2_kh1_64x128_a16_b16_sink_svd_f32_{{.*}}%[[SINK:[a-z0-9]+]]: !ssk.global<f32> {ssk.name = "sink"}
// CHECK: ssk.load %[[SINK]]
// CHECK: ssk.call @ss_orthogonalize
// CHECK: ssk.kernel @gdn_densify_h2_kh1_64x128_a16_b16_sink_f32
// CHECK-NOT: ssk.name = "sink"
