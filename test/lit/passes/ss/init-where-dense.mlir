// Init kernels for the layers whose dense states come back to factors by them: the
// option of ss-expand-layers and of ss-compile; without it there are none.
//
// RUN: ss-opt %s --ss-expand-layers=init-where-dense | FileCheck %s
// RUN: ss-compile %s --no-cpu --init-where-dense -o %t/where && FileCheck %s --check-prefix=WHERE < %t/where/manifest.json
// RUN: ss-compile %s --no-cpu -o %t/none && FileCheck %s --check-prefix=NONE < %t/none/manifest.json
// A package for CPUs alone needs none: their engine decomposes on its own.
// RUN: ss-compile %s --no-cuda --init-where-dense --cpu x86-64-v2 -o %t/cpu && FileCheck %s --check-prefix=NONE < %t/cpu/manifest.json

// CHECK: @relative_init
// CHECK-NOT: _init
// CHECK: @half_init
// CHECK-NOT: _init

// WHERE-COUNT-2: "role": "init"
// WHERE-NOT: "role": "init"
// NONE-NOT: "role": "init"

ss.model @forms {
  ss.layer @relative type gdn index 0 heads 2 key_heads 2 dv 32 dk 24 gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.2
      policy #ss.policy<relative, 3.0e-2> active 4 buffer 4 core qr storage f32 form factored {beta_scale = 1.0 : f64, draft = 0}
  ss.layer @exact type gdn index 1 heads 2 key_heads 2 dv 32 dk 24 gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.2
      policy #ss.policy<relative, 1.0e-4> active 4 buffer 4 core qr storage f32 form factored {beta_scale = 1.0 : f64, draft = 0}
  ss.layer @energy type gdn index 2 heads 2 key_heads 2 dv 32 dk 24 gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.2
      policy #ss.policy<energy, 9.99e-1> active 4 buffer 4 core qr storage f32 form factored {beta_scale = 1.0 : f64, draft = 0}
  ss.layer @fixed type gdn index 3 heads 2 key_heads 2 dv 32 dk 24 gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.2
      policy #ss.policy<fixed, 4> active 4 buffer 4 core qr storage f32 form factored {beta_scale = 1.0 : f64, draft = 0}
  ss.layer @bytes type gdn index 4 heads 2 key_heads 2 dv 32 dk 24 gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.2
      policy #ss.policy<relative, 3.0e-2> active 4 buffer 4 core qr storage fp8 form factored {beta_scale = 1.0 : f64, draft = 0}
  ss.layer @half type gdn index 5 heads 2 key_heads 2 dv 32 dk 24 gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.2
      policy #ss.policy<relative, 3.0e-2> active 4 buffer 4 core qr storage f16 form factored {beta_scale = 1.0 : f64, draft = 0}
  ss.layer @large type gdn index 6 heads 2 key_heads 2 dv 160 dk 160 gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.2
      policy #ss.policy<relative, 3.0e-2> active 4 buffer 4 core qr storage f32 form factored {beta_scale = 1.0 : f64, draft = 0}
}
