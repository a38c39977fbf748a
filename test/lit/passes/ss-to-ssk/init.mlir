// RUN: ss-opt %s --pass-pipeline='builtin.module(ss-graph-pipeline)' | FileCheck %s --check-prefix=WITHOUT
// RUN: ss-opt %s --ss-expand-layers=init | FileCheck %s --check-prefix=EXPAND
// RUN: ss-opt %s --pass-pipeline='builtin.module(ss-pipeline{init=true})' | FileCheck %s
// RUN: ss-compile %s --init --no-cuda --cpu x86-64-v2 -o %t && FileCheck %s --check-prefix=PACKAGE < %t/manifest.json

// RUN: ss-opt %s --pass-pipeline='builtin.module(ss-pipeline{init=true init-warps=2})' | FileCheck %s --check-prefix=TWO
// RUN: not ss-opt %s --pass-pipeline='builtin.module(ss-pipeline{init=true init-warps=9})' -o /dev/null 2>&1 | FileCheck %s --check-prefix=NINE

// TWO: role = "init"
// TWO-SAME: warps = 2
// NINE: error: init-warps is 9, expected 1 to 8, or 0 for what the device asks for

// RUN: ss-opt %s --pass-pipeline='builtin.module(ss-pipeline{init=true})' | ss-translate --ssk-to-cuda | FileCheck %s --check-prefix=CUDA

// Init kernels are made where they are asked for.
// WITHOUT-NOT: init

// EXPAND-LABEL: func.func @layer0_init(
// EXPAND-SAME: tensor<2x24x40xf32>) -> !
// EXPAND-SAME: ss.role = "init"
// EXPAND: ss.init %{{.*}} eps 3.000000e-03
// EXPAND-NOT: @layer1_init

// Four warps work on a state. The matrix is read in chunks of 10 of its 40 columns,
// the Gram matrix is of the side of 24, packed where the vectors will be, and 16 components are kept (the largest
// multiple of a block that 24 have).
// CHECK: ssk.kernel @gdn_init_
// CHECK-SAME: ssk.name = "matrices"
// CHECK-SAME: ssk.name = "matrix_base"
// CHECK-SAME: ssk.name = "seed"
// CHECK-SAME: role = "init"
// CHECK-SAME: warps = 4
// CHECK-DAG: %[[VECTORS:.*]] = ssk.alloc {{.*}}!ssk.shared<25x24xf32>
// CHECK-DAG: %[[CHUNK:.*]] = ssk.alloc {{.*}}!ssk.shared<10x24xf32>
// CHECK: scf.for
// CHECK: ssk.load {{.*}}!ssk.global<f32> -> !ssk.tile<24xf32, lanes = 0>
// CHECK: } {ssk.over_warps}
// CHECK: ssk.call @ss_add_gram({{.*}}, %[[CHUNK]], %[[VECTORS]]) reads [4, 5] writes [5]
// CHECK: ssk.call @ss_gram_svd({{.*}}, %[[VECTORS]],
// CHECK: ssk.matmul %[[VECTORS]], %[[CHUNK]] into %{{.*}} limit %{{.*}} {transpose_b}

// A grid of any size runs the whole list; a block's warps begin and end a state
// together. Where its rows are is read behind the decomposition, and not kept.
// CUDA: gdn_init_{{.*}}: init
// CUDA: // 4 warps a program and a block, {{[0-9]+}} bytes of shared memory, in a loop over programs.
// CUDA: const int64_t *row_base,
// CUDA: const int32_t *work,
// CUDA: for (int64_t program = blockIdx.x; program < programs; program += int64_t(gridDim.x)) {
// CUDA-NEXT: if (program >= int64_t(work_count[0]))
// CUDA-NEXT: return;
// CUDA-NEXT: __syncthreads();
// CUDA-NOT: work[program]
// CUDA: ss::gram_svd<4>(
// CUDA: const int64_t [[STATE:.*]] = work[program];
// CUDA-NEXT: const int64_t {{.*}} = row_base[[[STATE]]];

// PACKAGE: "init": "gdn_init_

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 1 dv 24 dk 40
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<relative, 3.0e-3> active 4 buffer 4 storage f32 form factored
  ss.layer @layer1 type gdn index 1 heads 2 key_heads 2 dv 16 dk 16
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<relative, 3.0e-3> active 4 buffer 4 storage f32 form dense
}
