// RUN: ss-opt %s --pass-pipeline='builtin.module(ssk.kernel(ssk-prepare))' | FileCheck %s

// A row of 128 floats is one float4 a lane; its offset is a multiple of 128.
// CHECK-LABEL: ssk.kernel @wide_access
ssk.kernel @wide_access(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) {
  %p = ssk.program_id : index
  %c128 = arith.constant 128 : index
  %at = arith.muli %p, %c128 : index
  // CHECK: ssk.load %{{.*}} {vector = 4 : i64}
  %t = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  // CHECK: ssk.store %{{.*}} {vector = 4 : i64}
  ssk.store %t, %y[%at] : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}

// A stride of unknown size allows one element; a promised divisor allows more.
// CHECK-LABEL: ssk.kernel @promised_divisor
ssk.kernel @promised_divisor(%x: !ssk.global<f32> {ssk.name = "x"}, %any: i64 {ssk.name = "any"},
                             %even: i64 {ssk.name = "even", ssk.divisible_by = 6 : i64}) {
  %p = ssk.program_id : index
  %0 = arith.index_cast %any : i64 to index
  %1 = arith.muli %p, %0 : index
  // CHECK: ssk.load
  // CHECK-NOT: vector
  %t = ssk.load %x[%1] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  // CHECK: arith.index_cast
  %2 = arith.index_cast %even : i64 to index
  %3 = arith.muli %p, %2 : index
  // CHECK: ssk.load %{{.*}} {vector = 2 : i64}
  %u = ssk.load %x[%3] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  // CHECK: %[[SUM:.*]] = ssk.dot
  %s = ssk.dot %t, %u : !ssk.tile<128xf32, lanes = 0>, !ssk.tile<128xf32, lanes = 0> -> f32
  ssk.write %s, %x[%p] : !ssk.global<f32>
  ssk.return
}

// Sixteen bytes are two doubles; 64 elements are two a lane; limits and rows matter.
// CHECK-LABEL: ssk.kernel @widths_by_type
ssk.kernel @widths_by_type(%d: !ssk.global<f64> {ssk.name = "d"}, %x: !ssk.global<f32> {ssk.name = "x"},
                           %n: i32 {ssk.name = "n"}) {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %limit = arith.index_cast %n : i32 to index
  // CHECK: ssk.load %{{.*}} {vector = 2 : i64} : !ssk.global<f64>
  %a = ssk.load %d[%c0] : !ssk.global<f64> -> !ssk.tile<128xf64, lanes = 0>
  // CHECK: ssk.load %{{.*}} {vector = 2 : i64} : !ssk.global<f32> -> !ssk.tile<64xf32, lanes = 0>
  %b = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<64xf32, lanes = 0>
  // CHECK: ssk.load %{{.*}} limit %{{.*}} : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  %c = ssk.load %x[%c0] limit %limit : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
  // CHECK: ssk.load %{{.*}} stride %{{.*}} limit %{{.*}} {vector = 2 : i64} : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
  %e = ssk.load %x[%c0] stride %c6 limit %limit : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
  // CHECK: ssk.load %{{.*}} {vector = 4 : i64} : !ssk.global<f32> -> !ssk.tile<4xf32>
  %f = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<4xf32>
  ssk.store %a, %d[%c0] : !ssk.tile<128xf64, lanes = 0>, !ssk.global<f64>
  ssk.store %b, %x[%c0] : !ssk.tile<64xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %c, %x[%c0] : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %e, %x[%c0] : !ssk.tile<4x128xf32, lanes = 1>, !ssk.global<f32>
  ssk.store %f, %x[%c0] : !ssk.tile<4xf32>, !ssk.global<f32>
  ssk.return
}

// CHECK-LABEL: ssk.kernel @read_after_write
ssk.kernel @read_after_write(%y: !ssk.global<f32> {ssk.name = "y"}, %x: f32 {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = ssk.alloc : !ssk.shared<2xf32>
  %t = ssk.alloc : !ssk.shared<2xf32>
  // Lane 0 makes all single writes: no sync between them.
  // CHECK: ssk.write
  // CHECK-NEXT: ssk.write
  ssk.write %x, %s[%c0] : !ssk.shared<2xf32>
  ssk.write %x, %s[%c1] : !ssk.shared<2xf32>
  // Other scratch is not concerned.
  // CHECK-NEXT: ssk.read
  %0 = ssk.read %t[%c0] : !ssk.shared<2xf32>
  // CHECK-NEXT: ssk.sync
  // CHECK-NEXT: ssk.read
  // CHECK-NEXT: ssk.read
  %1 = ssk.read %s[%c0] : !ssk.shared<2xf32>
  %2 = ssk.read %s[%c1] : !ssk.shared<2xf32>
  // CHECK-NEXT: arith.addf
  %3 = arith.addf %1, %2 : f32
  // A write after reads of other lanes.
  // CHECK-NEXT: ssk.sync
  // CHECK-NEXT: ssk.write
  ssk.write %3, %s[%c0] : !ssk.shared<2xf32>
  // CHECK-NEXT: ssk.write %{{.*}}, %arg0
  ssk.write %0, %y[%c0] : !ssk.global<f32>
  ssk.return
}

// The end of an iteration meets the beginning of the next one.
// CHECK-LABEL: ssk.kernel @reuse_in_a_loop
ssk.kernel @reuse_in_a_loop(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i32 {ssk.name = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %end = arith.index_cast %n : i32 to index
  %s = ssk.alloc : !ssk.shared<32xf32>
  // CHECK: scf.for
  scf.for %i = %c0 to %end step %c1 {
    %at = arith.muli %i, %c32 : index
    // CHECK: ssk.load %{{.*}} : !ssk.global<f32>
    %t = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<32xf32, lanes = 0>
    // CHECK-NEXT: ssk.sync
    // CHECK-NEXT: ssk.store
    ssk.store %t, %s[%c0] : !ssk.tile<32xf32, lanes = 0>, !ssk.shared<32xf32>
    // CHECK-NEXT: ssk.sync
    // CHECK-NEXT: ssk.read
    %e = ssk.read %s[%i] : !ssk.shared<32xf32>
    // CHECK-NOT: ssk.sync
    // CHECK: }
    %z = ssk.read %s[%c0] : !ssk.shared<32xf32>
    %sum = arith.addf %e, %z : f32
    %flag = arith.cmpf ogt, %sum, %z : f32
    scf.if %flag {
    }
  }
  ssk.return
}

// A write on one side of a branch is met after it.
// CHECK-LABEL: ssk.kernel @branch
ssk.kernel @branch(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i32 {ssk.name = "n"}, %v: f32 {ssk.name = "v"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %s = ssk.alloc : !ssk.shared<1xf32>
  ssk.fill %s, %v : !ssk.shared<1xf32>
  %flag = arith.cmpi sgt, %n, %zero : i32
  // CHECK: scf.if
  // CHECK-NEXT: ssk.sync
  // CHECK-NEXT: ssk.write
  scf.if %flag {
    ssk.write %v, %s[%c0] : !ssk.shared<1xf32>
  }
  // CHECK: ssk.sync
  // CHECK-NEXT: ssk.read
  %e = ssk.read %s[%c0] : !ssk.shared<1xf32>
  ssk.write %e, %x[%c0] : !ssk.global<f32>
  ssk.return
}

// Pointers that may be the same memory count as one.
// CHECK-LABEL: ssk.kernel @aliases
ssk.kernel @aliases(%a: !ssk.global<f32> {ssk.name = "a", ssk.may_alias}, %b: !ssk.global<f32> {ssk.name = "b", ssk.may_alias}) {
  %c0 = arith.constant 0 : index
  // CHECK: ssk.load
  // CHECK-NEXT: ssk.sync
  // CHECK-NEXT: ssk.store
  %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<32xf32, lanes = 0>
  ssk.store %t, %b[%c0] : !ssk.tile<32xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}

// Each accumulation starts from its own splat.
// CHECK-LABEL: ssk.kernel @splats
ssk.kernel @splats(%y: !ssk.global<f32> {ssk.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %t = ssk.splat %zero : f32 -> !ssk.tile<32xf32, lanes = 0>
  // CHECK: %[[A:.*]] = ssk.splat
  // CHECK-NEXT: ssk.store %[[A]]
  ssk.store %t, %y[%c0] : !ssk.tile<32xf32, lanes = 0>, !ssk.global<f32>
  // CHECK: %[[B:.*]] = ssk.splat
  // CHECK: ssk.store %[[B]]
  ssk.store %t, %y[%c32] : !ssk.tile<32xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}

// The first scratch is read for the last time before the third is written: one slot.
// 30 KB of scratch leave room for one program in 48 KB.
// CHECK-LABEL: ssk.kernel @scratch_slots
// CHECK-SAME: programs_per_block = 1
ssk.kernel @scratch_slots(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 8 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: ssk.alloc {slot = 0 : i64} : !ssk.shared<32x128xf32>
  // CHECK: ssk.alloc {slot = 1 : i64} : !ssk.shared<28x128xf32>
  // CHECK: ssk.alloc {slot = 0 : i64} : !ssk.shared<16x128xf32>
  %a = ssk.alloc : !ssk.shared<32x128xf32>
  %b = ssk.alloc : !ssk.shared<28x128xf32>
  %c = ssk.alloc : !ssk.shared<16x128xf32>
  ssk.fill %a, %zero : !ssk.shared<32x128xf32>
  ssk.fill %b, %zero : !ssk.shared<28x128xf32>
  %e = ssk.read %a[%c0, %c0] : !ssk.shared<32x128xf32>
  // The other scratch of the slot was read: its lanes must be done.
  // CHECK: ssk.sync
  // CHECK: ssk.sync
  // CHECK-NEXT: ssk.fill
  ssk.fill %c, %e : !ssk.shared<16x128xf32>
  %f = ssk.read %c[%c0, %c0] : !ssk.shared<16x128xf32>
  %g = ssk.read %b[%c0, %c0] : !ssk.shared<28x128xf32>
  %h = arith.addf %f, %g : f32
  ssk.write %h, %x[%c0] : !ssk.global<f32>
  ssk.return
}

// What a loop uses is needed in all of its iterations.
// CHECK-LABEL: ssk.kernel @scratch_in_a_loop
// CHECK-SAME: programs_per_block = 8
ssk.kernel @scratch_in_a_loop(%x: !ssk.global<f32> {ssk.name = "x"}, %v: f32 {ssk.name = "v"}) attributes {programs_per_block = 8 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // CHECK: ssk.alloc {slot = 0 : i64}
  // CHECK: ssk.alloc {slot = 1 : i64}
  %a = ssk.alloc : !ssk.shared<4xf32>
  %b = ssk.alloc : !ssk.shared<4xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    ssk.fill %a, %v : !ssk.shared<4xf32>
    %e = ssk.read %a[%c0] : !ssk.shared<4xf32>
    ssk.fill %b, %e : !ssk.shared<4xf32>
    %f = ssk.read %b[%c0] : !ssk.shared<4xf32>
    ssk.write %f, %x[%i] : !ssk.global<f32>
  }
  ssk.return
}

// Rows of a factor that would begin in the same bank get a pitch; others do not.
// Copies take the widest access, and a sync stands before what they wrote is read.
// CHECK-LABEL: ssk.kernel @copies_and_pitch
ssk.kernel @copies_and_pitch(%rows: !ssk.global<f32> {ssk.name = "rows"}, %y: !ssk.global<f32> {ssk.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  // CHECK-DAG: ssk.alloc {pitch = 136 : i64, slot = {{.*}}} : !ssk.shared<16x128xf32>
  %a = ssk.alloc : !ssk.shared<16x128xf32>
  // CHECK-DAG: ssk.alloc {pitch = 20 : i64, slot = {{.*}}} : !ssk.shared<16x16xf64>
  %g = ssk.alloc : !ssk.shared<16x16xf64>
  // CHECK-DAG: ssk.alloc {slot = {{.*}}} : !ssk.shared<128xf32>
  %v = ssk.alloc : !ssk.shared<128xf32>
  // CHECK: ssk.copy {{.*}} {vector = 4 : i64} : !ssk.global<f32>, !ssk.shared<16x128xf32>
  ssk.copy %rows[%c128] to %a[%c1] : !ssk.global<f32>, !ssk.shared<16x128xf32>
  // CHECK: ssk.copy {{.*}} {{.*}}: !ssk.global<f32>, !ssk.shared<128xf32>
  ssk.copy %rows[%c1] to %v : !ssk.global<f32>, !ssk.shared<128xf32>
  // CHECK: ssk.wait_copies
  // CHECK-NEXT: ssk.sync
  // CHECK-NEXT: ssk.matmul
  ssk.wait_copies
  ssk.matmul %a, %a into %g {transpose_b} : !ssk.shared<16x128xf32>, !ssk.shared<16x128xf32>, !ssk.shared<16x16xf64>
  %x = ssk.read %v[%c0] : !ssk.shared<128xf32>
  ssk.write %x, %y[%c0] : !ssk.global<f32>
  ssk.return
}

// A sync before the wait does not show what is copied: another one follows it.
// CHECK-LABEL: ssk.kernel @sync_while_copies_run
ssk.kernel @sync_while_copies_run(%rows: !ssk.global<f32> {ssk.name = "rows"}, %y: !ssk.global<f32> {ssk.name = "y"}) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %a = ssk.alloc : !ssk.shared<128xf32>
  %b = ssk.alloc : !ssk.shared<128xf32>
  // CHECK: ssk.copy
  ssk.copy %rows[%c0] to %a : !ssk.global<f32>, !ssk.shared<128xf32>
  // CHECK: ssk.fill
  ssk.fill %b, %one : !ssk.shared<128xf32>
  // CHECK-NEXT: ssk.sync
  // CHECK-NEXT: ssk.read
  %x = ssk.read %b[%c0] : !ssk.shared<128xf32>
  // CHECK-NEXT: ssk.wait_copies
  ssk.wait_copies
  // CHECK-NEXT: ssk.sync
  // CHECK-NEXT: ssk.read
  %z = ssk.read %a[%c0] : !ssk.shared<128xf32>
  %sum = arith.addf %x, %z : f32
  ssk.write %sum, %y[%c0] : !ssk.global<f32>
  ssk.return
}

// Parts add up through scratch of each warp. What they read of scratch is needed in
// every part: it does not share a slot with the sums. A warp's lanes meet where they
// read it first, and all warps behind the parts: nothing is missing there.
// CHECK-LABEL: ssk.kernel @parts
ssk.kernel @parts(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  // CHECK-DAG: %[[SUM:.*]] = ssk.alloc {slot = [[SUM_SLOT:[0-9]+]] : i64} : !ssk.shared<64xf32>
  // CHECK-DAG: %[[COEF:.*]] = ssk.alloc {slot = [[COEF_SLOT:[0-9]+]] : i64} : !ssk.shared<32xf32>
  %c0 = arith.constant 0 : index
  %coef = ssk.alloc : !ssk.shared<32xf32>
  %c = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<32xf32, lanes = 0>
  ssk.store %c, %coef[%c0] : !ssk.tile<32xf32, lanes = 0>, !ssk.shared<32xf32>
  // CHECK: ssk.parts 2 through %[[SUM]] : !ssk.shared<64xf32> {
  %sum = ssk.parts 2 {
  ^bb0(%part: index):
    // CHECK: ssk.load %{{.*}} {vector = 2 : i64}
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<64xf32, lanes = 0>
    // CHECK: ssk.sync
    // CHECK-NEXT: ssk.read %[[COEF]]
    %f = ssk.read %coef[%part] : !ssk.shared<32xf32>
    %u = ssk.map (%t) dims [[0]] : (!ssk.tile<64xf32, lanes = 0>) -> !ssk.tile<64xf32, lanes = 0> {
    ^bb0(%e: f32):
      %m = arith.mulf %e, %f : f32
      ssk.yield %m : f32
    }
    ssk.yield_part %u : !ssk.tile<64xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<64xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<64xf32, lanes = 0>
  } : !ssk.tile<64xf32, lanes = 0>
  // CHECK-NOT: ssk.sync
  ssk.store %sum, %y[%c0] : !ssk.tile<64xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}

// In a compaction, loops that take several elements at a time and run an unknown number of
// times are not unrolled further.
// CHECK-LABEL: ssk.kernel @compaction
ssk.kernel @compaction(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i64 {ssk.name = "n"}) attributes {programs_per_block = 1 : i64, role = "compact"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %count = arith.index_cast %n : i64 to index
  // CHECK: scf.for
  // CHECK: } {ssk.unroll = 1 : i64}
  scf.for %i = %c0 to %count step %c32 {
    ssk.write %zero, %x[%i] : !ssk.global<f32>
  }
  // CHECK: scf.for
  // CHECK: ssk.write
  // CHECK-NEXT: }{{$}}
  scf.for %i = %c0 to %count step %c1 {
    ssk.write %zero, %x[%i] : !ssk.global<f32>
  }
  // CHECK: scf.for
  // CHECK: ssk.write
  // CHECK-NEXT: }{{$}}
  scf.for %i = %c0 to %c64 step %c32 {
    ssk.write %zero, %x[%i] : !ssk.global<f32>
  }
  ssk.return
}

// Elsewhere that is the compiler's choice.
// CHECK-LABEL: ssk.kernel @decode
ssk.kernel @decode(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i64 {ssk.name = "n"}) attributes {programs_per_block = 1 : i64, role = "decode"} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %count = arith.index_cast %n : i64 to index
  // CHECK: scf.for
  // CHECK: ssk.write
  // CHECK-NEXT: }{{$}}
  scf.for %i = %c0 to %count step %c32 {
    ssk.write %zero, %x[%i] : !ssk.global<f32>
  }
  ssk.return
}
