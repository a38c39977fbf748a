// Two small layers of the same kernels.
ss.model @two {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 1 dv 16 dk 16
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.25
      policy #ss.policy<relative, 1.0e-2> active 4 buffer 4 storage f32 form factored
  ss.layer @layer1 type gdn index 1 heads 2 key_heads 1 dv 16 dk 16
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.25
      policy #ss.policy<relative, 1.0e-2> active 4 buffer 4 storage f32 form factored
}
