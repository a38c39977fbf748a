// RUN: ss-opt %s -convert-ssk-to-llvm=vector-width=16 -cse | FileCheck %s
// RUN: ss-opt %s -convert-ssk-to-llvm=vector-width=4 -cse | FileCheck %s --check-prefix=NARROW
// RUN: ss-opt %s -ssk-to-llvm=vector-width=8 | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

// 100 = 6 x 16 + 4, and 3 = 2 + 1: no vector has another length.
// CHECK-LABEL: llvm.func internal @copy.program(
// CHECK-SAME: %[[A:.*]]: !llvm.ptr {llvm.noalias}, %[[B:.*]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-SAME: no_inline
// CHECK-SAME: "no-builtins"
// CHECK-COUNT-6: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> vector<2xf32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-COUNT-6: llvm.store %{{.*}} : vector<16xf32>
// CHECK: llvm.store %{{.*}} : vector<4xf32>
// NARROW-LABEL: llvm.func internal @copy.program
// NARROW-COUNT-25: llvm.load %{{.*}} : !llvm.ptr -> vector<4xf32>
// NARROW: llvm.load %{{.*}} : !llvm.ptr -> vector<2xf32>

// The entry point loads the arguments and loops over programs, each of which
// hears of the one after it.
// CHECK-LABEL: llvm.func @copy(
// CHECK-SAME: %[[ARGS:.*]]: !llvm.ptr, %[[ROUTINES:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK: llvm.load %[[ARGS]]
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[ARGS]][1]
// CHECK: llvm.load %[[SLOT]]
// CHECK: %[[LAST:.*]] = arith.subi %[[END]]
// CHECK: scf.for %[[P:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: %[[BEHIND:.*]] = arith.addi %[[P]]
// CHECK: %[[NEXT:.*]] = arith.minsi %[[BEHIND]], %[[LAST]]
// CHECK: llvm.call @copy.program(%{{.*}}, %{{.*}}, %[[ROUTINES]], %[[P]], %[[NEXT]])
// LLVM-DAG: define internal void @copy.program(ptr noalias %{{.*}}, ptr noalias %{{.*}}, ptr %{{.*}}, i64 %{{.*}}, i64 %{{.*}})
// LLVM-DAG: define void @copy(ptr %{{.*}}, ptr %{{.*}}, i64 %{{.*}}, i64 %{{.*}})
ssk.kernel @copy(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"}) {
  %c0 = arith.constant 0 : index
  %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<100xf32, lanes = 0>
  %u = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<3xf32, lanes = 0>
  ssk.store %t, %b[%c0] : !ssk.tile<100xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %u, %b[%c0] : !ssk.tile<3xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}

// Chunk by chunk over the rows, then all rows are folded together.
// CHECK-LABEL: llvm.func internal @dot.program
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// CHECK-NEXT: arith.mulf {{.*}} : vector<16xf32>
// CHECK: llvm.intr.fmuladd{{.*}}vector<16xf32>
// CHECK-NEXT: llvm.intr.fmuladd{{.*}}vector<16xf32>
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31]
// CHECK-NEXT: arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT: fastmath
// CHECK: vector.extract %[[SUMS:.*]][0] : f32 from vector<2xf32>
// CHECK-NEXT: vector.extract %[[SUMS]][1] : f32 from vector<2xf32>
ssk.kernel @dot(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"}) {
  %c0 = arith.constant 0 : index
  %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<2x32xf32, lanes = 1>
  %k = ssk.load %b[%c0] : !ssk.global<f32> -> !ssk.tile<32xf32, lanes = 0>
  %d = ssk.dot %t, %k : !ssk.tile<2x32xf32, lanes = 1>, !ssk.tile<32xf32, lanes = 0> -> !ssk.tile<2xf32>
  ssk.store %d, %b[%c0] : !ssk.tile<2xf32>, !ssk.global<f32>
  ssk.return
}

// Rows behind the limit are read from zeros, without a branch; a limit on
// elements is a mask. `ssk.may_alias` takes the promise back.
// CHECK-LABEL: llvm.func internal @limits.program(%arg0: !llvm.ptr, %arg1: !llvm.ptr,
// CHECK: %[[IN:.*]] = arith.cmpi sgt
// CHECK: %[[ZEROS:.*]] = llvm.mlir.addressof @ssk.zeros
// CHECK: arith.select %[[IN]], %{{.*}}, %[[ZEROS]] : !llvm.ptr
// CHECK: llvm.intr.masked.load
// CHECK: scf.if
// CHECK: llvm.intr.masked.store
ssk.kernel @limits(%a: !ssk.global<f32> {ssk.name = "a", ssk.may_alias}, %b: !ssk.global<f32> {ssk.name = "b", ssk.may_alias},
                   %limit: i64 {ssk.name = "limit"}) {
  %c0 = arith.constant 0 : index
  %n = arith.index_cast %limit : i64 to index
  %t = ssk.load %a[%c0] limit %n : !ssk.global<f32> -> !ssk.tile<2x16xf32, lanes = 1>
  %u = ssk.load %a[%c0] limit %n : !ssk.global<f32> -> !ssk.tile<16xf32, lanes = 0>
  ssk.store %t, %b[%c0] limit %n : !ssk.tile<2x16xf32, lanes = 1>, !ssk.global<f32>
  ssk.store %u, %b[%c0] limit %n : !ssk.tile<16xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}

// Scratch is allocated on entry; calls go through the table, behind two u32.
// CHECK-LABEL: llvm.func internal @call.program(%arg0: i32, %arg1: !llvm.ptr,
// CHECK: %[[N:.*]] = arith.constant 16 : i64
// CHECK: llvm.alloca %[[N]] x f64 {alignment = 64 : i64}
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %arg1[8] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: %[[F:.*]] = llvm.load %[[SLOT]]
// CHECK-NOT: ssk.sync
// CHECK: llvm.call %[[F]](%arg0, %{{.*}}, %{{.*}}) : !llvm.ptr, (i32, !llvm.ptr, !llvm.ptr) -> i32
ssk.kernel @call(%m: i32 {ssk.name = "m"}) {
  %g = ssk.alloc : !ssk.shared<4x4xf64>
  %t = ssk.alloc : !ssk.shared<4x4xf64>
  ssk.sync
  %s = ssk.call @ss_orthogonalize(%m, %g, %t) reads [1] writes [1, 2] : (i32, !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>) -> i32
  ssk.return
}

// Tiles go through loops part by part.
// CHECK-LABEL: llvm.func internal @loop.program
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (vector<16xf32>, vector<4xf32>)
ssk.kernel @loop(%a: !ssk.global<f32> {ssk.name = "a"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<20xf32, lanes = 0>
  %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %t) -> (!ssk.tile<20xf32, lanes = 0>) {
    %y = ssk.map (%x) dims [[0]] : (!ssk.tile<20xf32, lanes = 0>) -> !ssk.tile<20xf32, lanes = 0> {
    ^bb0(%e: f32):
      %f = arith.mulf %e, %e : f32
      ssk.yield %f : f32
    }
    scf.yield %y : !ssk.tile<20xf32, lanes = 0>
  }
  ssk.store %s, %a[%c0] : !ssk.tile<20xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}

// No math operation and no call of a C library remains.
// CHECK-LABEL: llvm.func internal @math.program
// CHECK-NOT: math.exp
// CHECK-NOT: math.log
// CHECK: math.sqrt
// LLVM-NOT: @llvm.exp
// LLVM-NOT: @llvm.log
ssk.kernel @math(%a: !ssk.global<f32> {ssk.name = "a"}) {
  %c0 = arith.constant 0 : index
  %x = ssk.read %a[%c0] : !ssk.global<f32>
  %e = math.exp %x : f32
  %l = math.log1p %e : f32
  %g = math.log %l : f32
  %s = math.sqrt %g : f32
  ssk.write %s, %a[%c0] : !ssk.global<f32>
  ssk.return
}

// Every line of 64 bytes is asked for.
// CHECK-LABEL: llvm.func internal @ahead.program
// CHECK-COUNT-7: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK: llvm.return
ssk.kernel @ahead(%a: !ssk.global<f32> {ssk.name = "a"}) {
  %n = ssk.next_program : index
  ssk.prefetch %a[%n] {count = 100 : i64} : !ssk.global<f32>
  ssk.return
}

// Parts one after the other: the sums of all but the latest, and the latest.
// CHECK-LABEL: llvm.func internal @parts.program(
// CHECK: %[[ZERO:.*]] = arith.constant -0.000000e+00 : f32
// CHECK: %[[MINUS:.*]] = vector.broadcast %[[ZERO]] : f32 to vector<16xf32>
// CHECK: %[[LOOP:.*]]:2 = scf.for %{{.*}} iter_args(%[[SUM:.*]] = %[[MINUS]], %[[LATEST:.*]] = %[[MINUS]])
// CHECK: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[LATEST]] : vector<16xf32>
// CHECK: %[[T:.*]] = llvm.load
// CHECK: scf.yield %[[NEXT]], %[[T]]
// CHECK: %[[LAST:.*]] = arith.mulf %[[LOOP]]#1, %[[LOOP]]#1 : vector<16xf32>
// CHECK: %[[ALL:.*]] = arith.addf %[[LOOP]]#0, %[[LAST]]
// CHECK: llvm.store %[[ALL]]
ssk.kernel @parts(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%part] : !ssk.global<f32> -> !ssk.tile<16xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<16xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<16xf32, lanes = 0>):
    %b = ssk.map (%a) dims [[0]] : (!ssk.tile<16xf32, lanes = 0>) -> !ssk.tile<16xf32, lanes = 0> {
    ^bb0(%e: f32):
      %m = arith.mulf %e, %e : f32
      ssk.yield %m : f32
    }
    ssk.yield_part %b : !ssk.tile<16xf32, lanes = 0>
  } : !ssk.tile<16xf32, lanes = 0>
  ssk.store %sum, %x[%c0] : !ssk.tile<16xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}
