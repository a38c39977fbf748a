// RUN: ss-translate --ssk-to-cuda %s | FileCheck %s --strict-whitespace
// RUN: ss-translate --ssk-to-cuda --cuda-kernel=half_storage %s | FileCheck %s --check-prefix=ONE

// How every operation is spelled; what the spelling does is tested by running it
// (test/unit/codegen/cuda).

// ONE: #include "ss/half.cuh"
// ONE-NOT: tiles_over_lanes

//      CHECK:#include "ss/base.cuh"
// CHECK-NEXT:#include "ss/core_svd.cuh"
// CHECK-NEXT:#include "ss/fill.cuh"
// CHECK-NEXT:#include "ss/half.cuh"
// CHECK-NEXT:#include "ss/matmul.cuh"
// CHECK-NEXT:#include "ss/tile.cuh"
// CHECK-NEXT:#include "ss/top_k.cuh"

// CHECK-LABEL:// tiles_over_lanes
//       CHECK:    float *x,
//       CHECK:    float *y,
//       CHECK:  const int64_t program = int64_t(blockIdx.x) * 4 + (threadIdx.x >> 5);
ssk.kernel @tiles_over_lanes(%x: !ssk.global<f32> {ssk.name = "x", ssk.may_alias}, %y: !ssk.global<f32> {ssk.name = "y", ssk.may_alias}, %n: i64 {ssk.name = "n"}) {
  %c0 = arith.constant 0 : index
  %limit = arith.index_cast %n : i64 to index
  // 80 elements are a float4 in 20 lanes, 160 two chunks of it.
  //      CHECK:  float a[4];
  // CHECK-NEXT:  ss::load_lanes<float4, 80>(a, &x[0]);
  %a = ssk.load %x[%c0] {vector = 4 : i64} : !ssk.global<f32> -> !ssk.tile<80xf32, lanes = 0> loc("a")
  // CHECK-NEXT:  float b[8];
  // CHECK-NEXT:  ss::load_lanes<float, 160>(b, &x[0], n);
  %b = ssk.load %x[%c0] limit %limit : !ssk.global<f32> -> !ssk.tile<160xf32, lanes = 0> loc("b")
  // CHECK-NEXT:  float c[3][2];
  // CHECK-NEXT:  ss::load_rows<float2, 64>(c, &x[0], n, n);
  %c = ssk.load %x[%c0] stride %limit limit %limit {vector = 2 : i64} : !ssk.global<f32> -> !ssk.tile<3x64xf32, lanes = 1> loc("c")
  // CHECK-NEXT:  float d[1][4];
  // CHECK-NEXT:  ss::load_columns<float4, 32>(d, &x[0], 4);
  %d = ssk.load %x[%c0] {vector = 4 : i64} : !ssk.global<f32> -> !ssk.tile<32x4xf32, lanes = 0> loc("d")
  // CHECK-NEXT:  float f[2][3];
  // CHECK-NEXT:  ss::load_all_rows<float>(f, &x[0], 3);
  %f = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<2x3xf32> loc("f")
  // CHECK-NEXT:  const float largest = ss::reduce_lanes<ss::Max, 80>(a);
  %0 = ssk.reduce max %a axis 0 : !ssk.tile<80xf32, lanes = 0> -> f32
  // CHECK-NEXT:  float sums[3];
  // CHECK-NEXT:  ss::reduce_lanes<ss::Add, 64>(sums, c);
  %1 = ssk.reduce add %c axis 1 : !ssk.tile<3x64xf32, lanes = 1> -> !ssk.tile<3xf32> loc("sums")
  // CHECK-NEXT:  float row[2];
  // CHECK-NEXT:  ss::reduce_first<ss::Min>(row, c);
  %2 = ssk.reduce min %c axis 0 : !ssk.tile<3x64xf32, lanes = 1> -> !ssk.tile<64xf32, lanes = 0> loc("row")
  // CHECK-NEXT:  float columns[4];
  // CHECK-NEXT:  ss::reduce_lanes_of_columns<ss::Add, 32>(columns, d);
  %3 = ssk.reduce add %d axis 0 : !ssk.tile<32x4xf32, lanes = 0> -> !ssk.tile<4xf32> loc("columns")
  // CHECK-NEXT:  float lengths[1];
  // CHECK-NEXT:  ss::reduce_second<ss::Add>(lengths, d);
  %4 = ssk.reduce add %d axis 1 : !ssk.tile<32x4xf32, lanes = 0> -> !ssk.tile<32xf32, lanes = 0> loc("lengths")
  // CHECK-NEXT:  const float sum = ss::reduce<ss::Add>(sums);
  %5 = ssk.reduce add %1 axis 0 : !ssk.tile<3xf32> -> f32
  // A map over rows and elements; a part of its expression with a name is a statement.
  // CHECK-NEXT:  float mapped[3][2];
  // CHECK-NEXT:#pragma unroll
  // CHECK-NEXT:  for (int r = 0; r < 3; ++r)
  // CHECK-NEXT:#pragma unroll
  // CHECK-NEXT:    for (int e = 0; e < 2; ++e)
  // CHECK-NEXT:    {
  // CHECK-NEXT:      const float scaled = c[r][e] * sums[r];
  // CHECK-NEXT:      mapped[r][e] = scaled > sum ? scaled : row[e];
  // CHECK-NEXT:    }
  %6 = ssk.map (%c, %1, %2) dims [[0, 1], [0], [1]] : (!ssk.tile<3x64xf32, lanes = 1>, !ssk.tile<3xf32>, !ssk.tile<64xf32, lanes = 0>) -> !ssk.tile<3x64xf32, lanes = 1> {
  ^bb0(%e: f32, %s: f32, %r: f32):
    %scaled = arith.mulf %e, %s : f32 loc("scaled")
    %above = arith.cmpf ogt, %scaled, %5 : f32
    %chosen = arith.select %above, %scaled, %r : f32
    ssk.yield %chosen : f32
  } loc("mapped")
  // CHECK-NEXT:  ss::store_rows<float, 64>(&y[0], mapped, 64, n);
  ssk.store %6, %y[%c0] limit %limit : !ssk.tile<3x64xf32, lanes = 1>, !ssk.global<f32>
  // CHECK-NEXT:  ss::store_columns<float, 32>(&y[0], d, 4);
  ssk.store %d, %y[%c0] : !ssk.tile<32x4xf32, lanes = 0>, !ssk.global<f32>
  // CHECK-NEXT:  ss::store_all<float>(&y[0], columns);
  ssk.store %3, %y[%c0] : !ssk.tile<4xf32>, !ssk.global<f32>
  // CHECK-NEXT:  ss::store_all_rows<float>(&y[0], f, 3);
  ssk.store %f, %y[%c0] : !ssk.tile<2x3xf32>, !ssk.global<f32>
  // CHECK-NEXT:  ss::store_lanes<float, 160>(&y[0], b);
  ssk.store %b, %y[%c0] : !ssk.tile<160xf32, lanes = 0>, !ssk.global<f32>
  // CHECK-NEXT:  ss::store_lanes<float, 32>(&y[0], lengths);
  ssk.store %4, %y[%c0] : !ssk.tile<32xf32, lanes = 0>, !ssk.global<f32>
  // CHECK-NEXT:  if (lane == 0)
  // CHECK-NEXT:    y[0] = largest;
  ssk.write %0, %y[%c0] : !ssk.global<f32>
  ssk.return
}

// Scratch is a structure for each program; what shares a slot is a union.
// CHECK-LABEL:// scratch_1
//       CHECK:// One warp a program, 2 programs a block, 3296 bytes of shared memory.
//       CHECK:struct scratch_1_scratch
ssk.kernel @scratch_1(%x: !ssk.global<f64> {ssk.name = "x"}, %m: i32 {ssk.name = "m"}) attributes {programs_per_block = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f64
  // CHECK-NEXT:  union {
  // CHECK-NEXT:    alignas(16) double core[8][8];
  // CHECK-NEXT:    alignas(16) double product[8][8];
  // CHECK-NEXT:  };
  // CHECK-NEXT:  alignas(16) double xt[8][8];
  // CHECK-NEXT:  alignas(16) double yt[8][8];
  // CHECK-NEXT:  alignas(16) double sigma[8];
  // CHECK-NEXT:  alignas(16) float weights[8];
  // CHECK-NEXT:  alignas(16) int32_t order[4];
  // CHECK-NEXT:};
  %core = ssk.alloc {slot = 0 : i64} : !ssk.shared<8x8xf64> loc("core")
  %product = ssk.alloc {slot = 0 : i64} : !ssk.shared<8x8xf64> loc("product")
  %xt = ssk.alloc : !ssk.shared<8x8xf64> loc("xt")
  %yt = ssk.alloc : !ssk.shared<8x8xf64> loc("yt")
  %sigma = ssk.alloc : !ssk.shared<8xf64> loc("sigma")
  %v = ssk.alloc : !ssk.shared<8xf32> loc("weights")
  %w = ssk.alloc : !ssk.shared<4xi32> loc("order")
  //      CHECK:  __shared__ scratch_1_scratch scratch_of_programs[2];
  // CHECK-NEXT:  scratch_1_scratch &scratch = scratch_of_programs[threadIdx.x >> 5];
  //      CHECK:  ss::fill(scratch.core, 0.0);
  ssk.fill %core, %zero : !ssk.shared<8x8xf64>
  // CHECK-NEXT:  __syncwarp();
  ssk.sync
  // CHECK-NEXT:  const int32_t status = ss::core_svd(m, scratch.core, scratch.xt, scratch.sigma, scratch.yt);
  %status = ssk.call @ss_core_svd(%m, %core, %xt, %sigma, %yt) reads [1] writes [1, 2, 3, 4] : (i32, !ssk.shared<8x8xf64>, !ssk.shared<8x8xf64>, !ssk.shared<8xf64>, !ssk.shared<8x8xf64>) -> i32
  ssk.sync
  // CHECK:  ss::matmul<true, false, 8, 8, 8>(scratch.product, scratch.xt, scratch.yt);
  ssk.matmul %xt, %yt into %product {transpose_a} : !ssk.shared<8x8xf64>, !ssk.shared<8x8xf64>, !ssk.shared<8x8xf64>
  // CHECK-NEXT:  ss::top_k(scratch.order, scratch.weights, 3);
  ssk.top_k %v count %c3 into %w : !ssk.shared<8xf32>, !ssk.shared<4xi32>
  // CHECK-NEXT:  __syncwarp();
  ssk.sync
  // CHECK-NEXT:  if (lane == 0) {
  // CHECK-NEXT:    x[scratch.order[0]] = scratch.product[0][3];
  // CHECK-NEXT:    scratch.order[3] = status | 4;
  // CHECK-NEXT:  }
  %i = ssk.read %w[%c0] : !ssk.shared<4xi32>
  %at = arith.index_cast %i : i32 to index
  %e = ssk.read %product[%c0, %c3] : !ssk.shared<8x8xf64>
  %c4 = arith.constant 4 : i32
  %bits = arith.ori %status, %c4 : i32
  ssk.write %e, %x[%at] : !ssk.global<f64>
  ssk.write %bits, %w[%c3] : !ssk.shared<4xi32>
  ssk.return
}

// More than 48 KB is asked for at the launch.
// CHECK-LABEL:// large_scratch
//       CHECK:// One warp a program, 1 program a block, 65536 bytes of dynamic shared memory.
//       CHECK:  extern __shared__ __align__(16) unsigned char shared_memory[];
//  CHECK-NEXT:  large_scratch_scratch &scratch =
//  CHECK-NEXT:      reinterpret_cast<large_scratch_scratch *>(shared_memory)[threadIdx.x >> 5];
ssk.kernel @large_scratch(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %s = ssk.alloc : !ssk.shared<128x128xf32> loc("block")
  ssk.fill %s, %zero : !ssk.shared<128x128xf32>
  ssk.return
}

// CHECK-LABEL:// half_storage
//       CHECK:    ss::half *__restrict__ h,
//       CHECK:  ss::half narrow[4];
//  CHECK-NEXT:  ss::load_lanes<uint2, 128>(narrow, &h[0]);
//  CHECK-NEXT:  float wide[4];
//  CHECK-NEXT:  ss::widen(wide, narrow);
ssk.kernel @half_storage(%h: !ssk.global<f16> {ssk.name = "h"}, %x: !ssk.global<f32> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %t = ssk.load %h[%c0] {vector = 4 : i64} : !ssk.global<f16> -> !ssk.tile<128xf16, lanes = 0> loc("narrow")
  %w = ssk.map (%t) dims [[0]] : (!ssk.tile<128xf16, lanes = 0>) -> !ssk.tile<128xf32, lanes = 0> {
  ^bb0(%e: f16):
    %g = arith.extf %e : f16 to f32
    ssk.yield %g : f32
  } loc("wide")
  ssk.store %w, %x[%c0] {vector = 4 : i64} : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %t, %h[%c0] {vector = 4 : i64} : !ssk.tile<128xf16, lanes = 0>, !ssk.global<f16>
  ssk.return
}

// CHECK-LABEL:// byte_storage
//       CHECK:    ss::float8 *__restrict__ b,
//       CHECK:  ss::float8 narrow[4];
//  CHECK-NEXT:  ss::load_lanes<uint32_t, 128>(narrow, &b[0]);
//       CHECK:  int32_t numbers[4];
//  CHECK-NEXT:  ss::iota_lanes<128>(numbers);
//       CHECK:    hashes[e] = int32_t(uint32_t(numbers[e]) * uint32_t(-1640531535));
ssk.kernel @byte_storage(%b: !ssk.global<f8E4M3FN> {ssk.name = "b"}, %x: !ssk.global<i32> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %golden = arith.constant -1640531535 : i32
  %t = ssk.load %b[%c0] {vector = 4 : i64} : !ssk.global<f8E4M3FN> -> !ssk.tile<128xf8E4M3FN, lanes = 0> loc("narrow")
  %n = ssk.iota : !ssk.tile<128xi32, lanes = 0> loc("numbers")
  %h = ssk.map (%n) dims [[0]] : (!ssk.tile<128xi32, lanes = 0>) -> !ssk.tile<128xi32, lanes = 0> {
  ^bb0(%e: i32):
    %g = arith.muli %e, %golden : i32
    ssk.yield %g : i32
  } loc("hashes")
  ssk.store %h, %x[%c0] {vector = 4 : i64} : !ssk.tile<128xi32, lanes = 0>, !ssk.global<i32>
  ssk.store %t, %b[%c0] {vector = 4 : i64} : !ssk.tile<128xf8E4M3FN, lanes = 0>, !ssk.global<f8E4M3FN>
  ssk.return
}
