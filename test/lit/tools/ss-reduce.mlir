// What is left is what the script wants to see, and nothing of the rest.
// REQUIRES: ss-reduce
// RUN: ss-reduce %s --reduction-tree="traversal-mode=0 test=%S/Inputs/has-kda.sh" | FileCheck %s
// CHECK: ss.layer @third type kda
// CHECK-NOT: ss.layer @first
ss.model @m {
  ss.layer @first type gdn index 0 heads 2 key_heads 1 dv 16 dk 16
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.25
      policy #ss.policy<relative, 1.0e-2> active 4 buffer 4 storage f32 form factored
}
ss.model @n {
  ss.layer @third type kda index 0 heads 2 key_heads 2 dv 16 dk 16
      gate #ss.gate<softplus_channel> norm #ss.norm<add, 1.0e-6> query_scale 0.25
      policy #ss.policy<relative, 1.0e-2> active 4 buffer 4 storage f32 form factored
}
