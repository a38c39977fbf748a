// Rows of 8 bits: unit rows times 2^8, undone once a row, in its weight; no dense
// form. Stochastic rounding adds what the bits depend on to the arguments of what
// rounds, and rounds before the conversion.
// RUN: ss-opt --ss-pipeline %s | FileCheck %s
// RUN: ss-opt --ss-pipeline %s | ss-translate --ssk-to-cuda | FileCheck %s --check-prefix=CUDA

ss.model @model {
  ss.layer @layer type gdn index 0 heads 2 key_heads 1 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core qr storage fp8 form factored
  ss.layer @random type kda index 1 heads 2 key_heads 1 dv 64 dk 128
      gate #ss.gate<softplus_channel> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core qr storage bf16 rounding stochastic form factored
}

// CHECK: ssk.kernel @gdn_decode_h2_kh1_128x128_a8_b8_fp8_{{[0-9a-f]+}}(%[[ROWS:.*]]: !ssk.global<f8E4M3FN> {ssk.name = "rows"}
// CHECK-NOT: arith.cmpi slt, %{{.*}}stored
// The scales of both halves.
// CHECK: %[[SCALE:.*]] = arith.constant 1.52587891E-5 : f32
// CHECK: ssk.load %[[ROWS]]{{.*}} limit %{{.*}} {vector = 4 : i64} : !ssk.global<f8E4M3FN> -> !ssk.tile<4x128xf8E4M3FN, lanes = 1>
// CHECK: arith.extf %{{.*}} : f8E4M3FN to f32
// CHECK: arith.mulf %{{.*}}, %[[SCALE]] : f32

// CHECK: ssk.kernel @gdn_compact_h2_kh1_128x128_a8_b8_qr_fp8_
// CHECK-NOT: request_keys
// CHECK: arith.constant {ssk.constant_name = "row_scale"} 2.560000e+02 : f32
// CHECK: arith.truncf %{{.*}} : f32 to f8E4M3FN

// CHECK: ssk.kernel @gdn_densify_h2_kh1_128x128_a8_b8_fp8
// CHECK-NOT: !ssk.global<f8E4M3FN>{{$}}

// CHECK: ssk.kernel @kda_decode{{.*}}bf16_sr
// CHECK-NOT: request_keys
// CHECK: ssk.kernel @kda_compact{{.*}}bf16_sr{{.*}}"positions"{{.*}}"request_keys"{{.*}}"layer"{{.*}}"first_head"
// CHECK: ssk.iota : !ssk.tile<128xi32, lanes = 0>
// CHECK: arith.truncf %{{.*}} : f32 to bf16

// CUDA: ss::float8 *__restrict__ rows
// CUDA: ss::load_rows<uint32_t, 128>(
