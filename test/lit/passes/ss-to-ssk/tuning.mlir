// What the graph does not say comes from the device's row of a table, or from the
// options; with `report` every kernel tells what was chosen, and why.
// RUN: ss-opt --ss-pipeline="report=true" %s -o %t.default 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: ss-opt --ss-pipeline %s -o %t.plain 2>&1 | count 0
// RUN: diff %t.default %t.plain
// RUN: ss-opt --ss-pipeline="device=cpu report=true" %s -o %t.cpu 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: ss-opt --ss-pipeline="rows-in-flight=2 programs-per-block=4 report=true" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=OPTIONS
// RUN: FileCheck %s --check-prefix=KERNELS < %t.default
// RUN: FileCheck %s --check-prefix=AHEAD < %t.cpu
// RUN: sed "s/storage f32/storage f16/" %s | ss-opt --ss-pipeline="report=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=F16
// RUN: sed "s/storage f32/storage fp8/" %s | ss-opt --ss-pipeline="report=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FP8
// RUN: sed "s/active 8 buffer 8/active 16 buffer 16/" %s | ss-opt --ss-pipeline="report=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not ss-opt --ss-pipeline="device=sm_61" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not ss-opt --ss-pipeline="rows-in-flight=-1" %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROWS

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 1 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  ss.layer @layer1 type mamba2 index 1 heads 2 key_heads 1 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  ss.layer @layer2 type kda index 2 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus_channel> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// GPU: remark: made 9 functions for 3 layers
// GPU: remark: at most 1 of 3 layers compact in one step
// GPU: remark: @gdn_decode_{{.*}}: 4 rows in flight, 1 or 4 warps a state, 24 resident blocks (sm_90: four rows hide the latency of memory; {{.*}}four warps a state 19.4 to 8.9 us at B = 8)
// Decode: 20 rows of 1028 bytes, 4.5 pairs of 772, 1544 of a token; a compaction:
// 8 rows read and written and 8 pairs read, once in 8 steps.
// GPU: remark: @gdn_compact_{{.*}}: 4 rows in flight, {{.*}}; a kernel of its own beside decode; a buffer of 8 and 8 active components: with 20 stored, a state's decode and a step's share of its compaction move {{[0-9]+}} + 3084 bytes; with a buffer of 16, {{[0-9]+}} + 2056 bytes
// F16: remark: @gdn_compact_{{.*}} move {{[0-9]+}} + 2060 bytes; with a buffer of 16, {{[0-9]+}} + 1544 bytes
// FP8: remark: @gdn_compact_{{.*}} move {{[0-9]+}} + 1548 bytes; with a buffer of 16, {{[0-9]+}} + 1288 bytes
// GPU: remark: @mamba2_decode_{{.*}}: 4 rows in flight, 1 or 2 warps a state, 32 resident blocks (sm_90: {{.*}}75 to 70 us{{.*}})
// 128 registers hold a compaction of 16 components.
// GPU: remark: @mamba2_compact_{{.*}}: 8 rows in flight, {{.*}}16 resident blocks
// GPU: remark: @kda_decode_{{.*}}: 4 rows in flight, 1 or 4 warps a state, 20 resident blocks (sm_90: {{.*}})
// Its routines are called, or not, as was measured.
// GPU: remark: @kda_compact_{{.*}}: 4 rows in flight, 1 warps a block, with products at every use (sm_90: {{.*}}11.1 to 10.5
// F16: remark: @mamba2_compact_{{.*}}, with products and orthogonalisation at every use
// F16: remark: @kda_compact_{{.*}}, with products at every use
// One of 32 components has the registers that it wants.
// LARGE: remark: @mamba2_compact_
// LARGE-NOT: resident blocks
// LARGE-SAME: a buffer of 16 and 16 active components

// CPU: remark: @gdn_decode_{{.*}}: 1 rows in flight (cpu: one row at a time leaves the vector registers to the sums; the next state's memory is asked for meanwhile)
// CPU: remark: @mamba2_decode_{{.*}}: 1 rows in flight (cpu:

// OPTIONS: remark: @gdn_decode_{{.*}}: 2 rows in flight, 4 warps a block (sm_90: as the options ask for)
// OPTIONS: remark: @mamba2_decode_{{.*}}: 4 rows in flight, 4 warps a block (sm_90: as the options ask for)

// The state that follows: its tables, its weights, decays and inputs at once, then
// a row or a pair of it with every one of this state's, and what it has more of.
// AHEAD: ssk.kernel @gdn_decode
// AHEAD: %[[NEXT:.*]] = ssk.next_program
// AHEAD-COUNT-6: ssk.prefetch
// AHEAD: scf.for
// AHEAD: ssk.prefetch %{{.*}} {count = 256 : i64}
// AHEAD: ssk.accumulate
// AHEAD: scf.for
// AHEAD-NEXT: arith.cmpi slt
// AHEAD: ssk.prefetch %{{.*}} {count = 256 : i64}
// A compaction asks for a share of the next state's rows and pairs between its
// pieces of work, and forms the rows that stay alone: those of the first factor
// are brought together, and the products end behind them.
// AHEAD: ssk.kernel @gdn_compact
// AHEAD: ssk.next_program
// AHEAD-COUNT-40: ssk.prefetch
// AHEAD: ssk.matmul %{{.*}}, %{{.*}} into %{{.*}} limit %{{.*}} : !ssk.shared<16x16xf64>, !ssk.shared<16x128xf32>, !ssk.shared<16x128xf32>
// AHEAD-NOT: into %{{[0-9]+}} : !ssk.shared<16x16xf64>, !ssk.shared<16x128xf32>
// AHEAD: ssk.kernel @gdn_densify

// KERNELS-NOT: ssk.prefetch
// KERNELS-NOT: limit %{{.*}} : !ssk.shared<16x16xf64>, !ssk.shared<16x128xf32>
// KERNELS: ssk.kernel @gdn_decode{{.*}}min_blocks = 24{{.*}}programs_per_block = 1
// KERNELS: ssk.parts 4
// KERNELS: ssk.kernel @mamba2_decode{{.*}}min_blocks = 32
// KERNELS: ssk.parts 2
// KERNELS: ssk.kernel @kda_decode{{.*}}min_blocks = 20
// KERNELS: ssk.parts 4
// KERNELS: ssk.kernel @kda_compact{{.*}}ssk.repeated = ["matmul"]

// A block of several programs, or a CPU, has no warps to divide a state over.
// RUN: ss-opt --ss-pipeline="programs-per-block=4" %s | FileCheck %s --check-prefix=WHOLE
// RUN: FileCheck %s --check-prefix=WHOLE < %t.cpu
// WHOLE-COUNT-3: role = "decode"
// WHOLE-NOT: ssk.parts

// DEVICE: error: no choices are known for device 'sm_61'; expected cpu or sm_90
// ROWS: error: rows-in-flight and programs-per-block must be at least 1, or 0 for what the device asks for, found -1 and 0
