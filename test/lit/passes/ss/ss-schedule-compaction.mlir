// RUN: ss-opt %s --split-input-file --pass-pipeline='builtin.module(ss.model(ss-schedule-compaction{compact-before=true}))' | FileCheck %s
// RUN: ss-opt %s --split-input-file --pass-pipeline='builtin.module(ss.model(ss-schedule-compaction{compact-before=true stagger=false}))' | FileCheck %s --check-prefix=SAME
// RUN: ss-opt %s --split-input-file --pass-pipeline='builtin.module(ss.model(ss-schedule-compaction{compact-before=true report=true}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// RUN: ss-opt %s --split-input-file --pass-pipeline='builtin.module(ss.model(ss-schedule-compaction{report=true}))' 2>&1 | FileCheck %s --check-prefix=AFTER

// Dense layers are not counted: three layers share the steps. The last quarter,
// one of three, compacts before its tokens, in the same steps.
// CHECK-LABEL: ss.model @spread
// CHECK: ss.schedule period 24 phases [@a = 0, @b = 4, @d = 4] before [@d]{{$}}
// CHECK-NOT: ss.schedule
// SAME-LABEL: ss.model @spread
// SAME: ss.schedule period 24 phases [@a = 0, @b = 0, @d = 7] before [@d]{{$}}
// REPORT: remark: at most 2 of 3 layers compact in one step; 1 before their token, from @d on: beside the decodes in front of them, so that no compaction is left to the end of a step
// AFTER: remark: at most 2 of 3 layers compact in one step; all after their token
// AFTER: ss.schedule period 24 phases [@a = 0, @b = 4, @d = 5]{{$}}
ss.model @spread {
  ss.layer @a type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  ss.layer @b type gdn index 1 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 12 storage f32 form factored
  ss.layer @c type gdn index 2 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 7 storage f32 form dense
  ss.layer @d type gdn index 4 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

// A schedule that is there is replaced.
// CHECK-LABEL: ss.model @again
// CHECK: ss.schedule period 8 phases [@a = 0, @b = 3] before [@b]
// CHECK-NOT: ss.schedule
// AFTER-LABEL: ss.model @again
// AFTER: ss.schedule period 8 phases [@a = 0, @b = 4]{{$}}
ss.model @again {
  ss.schedule period 80 phases [@a = 3, @b = 3] before [@a]
  ss.layer @a type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  ss.layer @b type gdn index 1 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

// CHECK-LABEL: ss.model @dense
// CHECK-NOT: ss.schedule
ss.model @dense {
  ss.layer @a type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form dense
}

// -----

// Draft tokens need it, whatever the option says.
// CHECK-LABEL: ss.model @drafts
// CHECK: ss.schedule period 8 phases [@a = 7, @b = 2, @c = 4] before [@a, @c]
// AFTER-LABEL: ss.model @drafts
// AFTER: ss.schedule period 8 phases [@a = 7, @b = 2, @c = 5] before [@a]
ss.model @drafts {
  ss.layer @a type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
      {draft = 3 : i64}
  ss.layer @b type gdn index 1 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  ss.layer @c type gdn index 2 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}
