// RUN: ss-opt %s --pass-pipeline='builtin.module(ss-graph-pipeline)' | FileCheck %s --check-prefix=WITHOUT
// RUN: ss-opt %s --ss-expand-layers=init | FileCheck %s --check-prefix=EXPAND
// RUN: ss-opt %s --pass-pipeline='builtin.module(ss-pipeline{init=true})' | FileCheck %s
// RUN: ss-compile %s --init --no-cuda --cpu x86-64-v2 -o %t && FileCheck %s --check-prefix=PACKAGE < %t/manifest.json

// Init kernels are made where they are asked for.
// WITHOUT-NOT: init

// EXPAND-LABEL: func.func @layer0_init(
// EXPAND-SAME: tensor<2x24x40xf32>) -> !
// EXPAND-SAME: ss.role = "init"
// EXPAND: ss.init %{{.*}} eps 3.000000e-03
// EXPAND-NOT: @layer1_init

// The matrix is worked on in scratch, the block in 16 vectors, all of them in
// 16 (the largest multiple that 24 rows have).
// CHECK: ssk.kernel @gdn_init_
// CHECK-SAME: ssk.name = "matrices"
// CHECK-SAME: ssk.name = "matrix_base"
// CHECK-SAME: ssk.name = "seed"
// CHECK-SAME: role = "init"
// CHECK-DAG: ssk.alloc {{.*}}!ssk.shared<40x24xf32>
// CHECK-DAG: ssk.alloc {{.*}}!ssk.shared<16x40xf32>
// CHECK: ssk.call @ss_orthogonalize
// CHECK: ssk.call @ss_core_svd

// PACKAGE: "init": "gdn_init_

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 1 dv 24 dk 40
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<relative, 3.0e-3> active 4 buffer 4 storage f32 form factored
  ss.layer @layer1 type gdn index 1 heads 2 key_heads 2 dv 16 dk 16
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<relative, 3.0e-3> active 4 buffer 4 storage f32 form dense
}
