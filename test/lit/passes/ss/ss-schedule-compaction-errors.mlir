// Buffers without a small common multiple.
// RUN: ss-opt %s --verify-diagnostics --pass-pipeline='builtin.module(ss.model(ss-schedule-compaction))'

ss.model @primes {
  ss.layer @l0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 53 storage f32 form factored
  ss.layer @l1 type gdn index 1 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 47 storage f32 form factored
  ss.layer @l2 type gdn index 2 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 43 storage f32 form factored
  ss.layer @l3 type gdn index 3 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 41 storage f32 form factored
  ss.layer @l4 type gdn index 4 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 37 storage f32 form factored
  // expected-error @+1 {{@l5 has a buffer of 31, which makes the schedule's period longer than 2147483648; give the layers buffers with a small common multiple}}
  ss.layer @l5 type gdn index 5 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 31 storage f32 form factored
}
