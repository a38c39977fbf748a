// A dense state that is read in every step and written once in K: with a full
// buffer one pass writes the pairs into the matrix and multiplies it; otherwise
// the matrix and the pairs are read.
// RUN: ss-opt %s --ss-expand-layers | FileCheck %s --check-prefix=EXPAND
// RUN: ss-opt --ss-pipeline %s | FileCheck %s
// RUN: ss-opt --ss-pipeline %s | ss-translate --ssk-to-cuda | FileCheck %s --check-prefix=CUDA

ss.model @model {
  ss.layer @layer type kda index 0 heads 4 key_heads 2 dv 64 dk 128
      gate #ss.gate<softplus_channel> norm #ss.norm<add, 1.0e-6> query_scale 1.0
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 6 storage f16 form deferred
}

// EXPAND: !state = !ss.state<kda, heads = 4, key_heads = 2, dv = 64, dk = 128, form = deferred, buffer = 6, storage = f16>
// EXPAND: func.func @layer_decode(%[[STATE:.*]]: !state,
// EXPAND: %[[FOLDED:.*]] = ss.fold %[[STATE]] : !state
// EXPAND-NEXT: %[[DECAYED:.*]] = ss.decay %[[FOLDED]]
// EXPAND-NEXT: %[[APPENDED:.*]] = ss.append %[[DECAYED]]
// EXPAND-NEXT: ss.readout %[[APPENDED]]
// EXPAND-NOT: func.func

// It has no schedule and one kernel.
// CHECK-NOT: ss.schedule
// CHECK: ssk.kernel @kda_decode_h4_kh2_64x128_deferred_b6_f16_{{[0-9a-f]+}}(%[[DENSE:.*]]: !ssk.global<f16> {ssk.name = "dense"}, %[[COUNT:.*]]: !ssk.global<i32> {ssk.name = "count"}, %[[K:.*]]: !ssk.global<f32> {ssk.name = "buffer_k"},
// CHECK: %[[KEYS:.*]] = ssk.alloc {{.*}} : !ssk.shared<6x128xf32>
// CHECK: ssk.read %[[COUNT]]
// CHECK: %[[FULL:.*]] = arith.cmpi sge
// CHECK: scf.if %[[FULL]] -> (!ssk.tile<64xf32, lanes = 0>, !ssk.tile<64xf32, lanes = 0>)
// The keys of the full half, decayed, then row after row of the matrix.
// CHECK: scf.for
// CHECK: ssk.load %[[K]]
// CHECK: ssk.store {{.*}}, %[[KEYS]]
// CHECK: scf.for
// CHECK: ssk.load %[[DENSE]]
// CHECK: scf.for
// CHECK: ssk.load %[[KEYS]]
// CHECK: ssk.store {{.*}}, %[[DENSE]]
// CHECK: ssk.accumulate
// CHECK: } else {
// CHECK: ssk.load %[[DENSE]]
// CHECK-NOT: ssk.store {{.*}}, %[[DENSE]]
// CHECK: ssk.load %[[K]]
// The pair is written in both cases.
// CHECK: ssk.store {{.*}}, %[[K]]
// CHECK-NOT: ssk.kernel

// CUDA: ss::store_lanes<float4, 128>(&scratch.{{.*}}[i][0], 
// CUDA: ss::load_rows<uint32_t, 64>({{.*}}, &dense[
// CUDA: ss::store_rows<uint32_t, 64>(&dense[
// CUDA: } else {
// CUDA: ss::load_rows<uint32_t, 64>({{.*}}, &dense[
// CUDA-NOT: &dense[
