// Compactions of 64 components. Where a GPU's block has room for all matrices nothing changes
// (80 x 128); elsewhere orthonormal rows are formed at once, of which a step needs three
// matrices; and the largest have no room to pad rows. A CPU has no such limit.
// RUN: ss-opt --ss-pipeline="report=true" %s -o %t.gpu 2>&1 | FileCheck %s --check-prefix=REPORT
// RUN: ss-opt --ss-pipeline="device=cpu report=true" %s -o %t.cpu 2>&1 | FileCheck %s --check-prefix=CPU --implicit-check-not="formed at once"
// RUN: rm -rf %t.cuda && mkdir %t.cuda
// RUN: ss-translate --ssk-to-cuda-files --cuda-folder=%t.cuda %t.gpu | FileCheck %s --check-prefix=BYTES
// RUN: FileCheck %s < %t.gpu
// RUN: sed "s/dv 256 dk 256/dv 384 dk 256/" %s | not ss-opt --ss-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: sed "s/dv 256 dk 256/dv 384 dk 256/" %s | ss-opt --ss-pipeline="device=cpu" -o /dev/null

ss.model @model {
  ss.layer @layer0 type mamba2 index 0 heads 2 key_heads 1 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<fixed, 32> active 32 buffer 32 storage f32 form factored
  ss.layer @layer1 type gdn index 1 heads 2 key_heads 1 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<fixed, 32> active 32 buffer 32 storage f32 form factored
  ss.layer @layer2 type gdn index 2 heads 2 key_heads 1 dv 256 dk 256
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<fixed, 32> active 32 buffer 32 core qr storage f32 form factored
}

// REPORT: remark: @mamba2_compact_
// REPORT-NOT: formed at once
// REPORT: remark: @gdn_compact_{{.*}}128x128{{.*}}; orthonormal rows are formed at once and rounded once more, for shared memory; a kernel of its own
// REPORT: remark: @gdn_compact_{{.*}}256x256{{.*}}; orthonormal rows are formed at once
// CPU: remark: @gdn_compact_

// BYTES-DAG: "name":"mamba2_compact_{{.*}}"shared_bytes":230288
// BYTES-DAG: "name":"gdn_compact_h2_kh1_128x128_{{.*}}"shared_bytes":174992
// BYTES-DAG: "name":"gdn_compact_h2_kh1_256x256_{{.*}}"shared_bytes":230288

// The left side's Q takes the place of its rows before the right side is looked at, and the
// right one's before the core is decomposed.
// CHECK-LABEL: ssk.kernel @gdn_compact_h2_kh1_128x128
// CHECK: ssk.call @ss_orthogonalize(%{{.*}}, %[[RL:[0-9]+]], %[[TL:[0-9]+]])
// CHECK: scf.if
// CHECK: ssk.call @ss_orthogonalize
// CHECK: }
// CHECK: ssk.matmul %[[TL]], %[[LEFT:[0-9]+]] into %[[LEFT]] :
// CHECK: ssk.matmul %[[RIGHT:[0-9]+]], %[[RIGHT]] into %[[RR:[0-9]+]] {transpose_b}
// CHECK: ssk.call @ss_orthogonalize(%{{.*}}, %[[RR]], %[[TR:[0-9]+]])
// CHECK: ssk.matmul %[[RL]], %[[RR]] into %[[RL]] {transpose_b}
// CHECK: scf.if
// CHECK: ssk.call @ss_orthogonalize(%{{.*}}, %[[RR]], %[[TR]])
// CHECK: ssk.matmul %[[RL]], %[[RR]] into %[[RL]] {transpose_b}
// CHECK: }
// CHECK: ssk.matmul %[[TR]], %[[RIGHT]] into %[[RIGHT]] :
// CHECK: ssk.call @ss_core_svd(%{{.*}}, %[[RL]], %[[RR]], %{{.*}}, %[[YT:[0-9]+]])
// CHECK: ssk.matmul %[[RR]], %[[LEFT]] into %[[LEFT]] :
// CHECK: ssk.matmul %[[YT]], %[[RIGHT]] into %[[RIGHT]] :

// CHECK-LABEL: ssk.kernel @gdn_compact_h2_kh1_256x256
// CHECK-NOT: pitch =
// CHECK: ssk.return

// ERROR: error: a compaction of 64 components of 384 x 256 (32 active and 32 buffered ones) needs {{[0-9]+}} bytes of a GPU's shared memory, expected at most 232448: make active or buffer smaller (of a fixed rank, the rank), or leave CUDA out (ss-compile --no-cuda)
