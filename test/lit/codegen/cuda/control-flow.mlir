// RUN: ss-translate --ssk-to-cuda %s | FileCheck %s --strict-whitespace

!vector = !ssk.tile<32xf32, lanes = 0>

// A carried scalar is updated in place; the bound is evaluated once.
// CHECK-LABEL: sum_of_elements(
//      CHECK:  float carried = 0.0f;
// CHECK-NEXT:  for (int64_t i = 0; i < end; ++i) {
// CHECK-NEXT:    carried += x[i];
// CHECK-NEXT:  }
//      CHECK:  if (lane == 0)
// CHECK-NEXT:    x[0] = carried;
ssk.kernel @sum_of_elements(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i64 {ssk.name = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %count = arith.index_cast %n : i64 to index
  %end = arith.addi %count, %c1 : index loc("end")
  %sum = scf.for %i = %c0 to %end step %c1 iter_args(%s = %zero) -> (f32) {
    %e = ssk.read %x[%i] : !ssk.global<f32>
    %next = arith.addf %s, %e : f32
    scf.yield %next : f32
  }
  ssk.write %sum, %x[%c0] : !ssk.global<f32>
  ssk.return
}

// Values that change places need temporaries.
// CHECK-LABEL: fibonacci(
//      CHECK:  float carried = 0.0f;
// CHECK-NEXT:  float carried_1 = 1.0f;
// CHECK-NEXT:  for (int64_t i = 0; i < 10; ++i) {
// CHECK-NEXT:    const float carried_next = carried_1;
// CHECK-NEXT:    const float carried_1_next = carried + carried_1;
// CHECK-NEXT:    carried = carried_next;
// CHECK-NEXT:    carried_1 = carried_1_next;
// CHECK-NEXT:  }
ssk.kernel @fibonacci(%x: !ssk.global<f32> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %r:2 = scf.for %i = %c0 to %c10 step %c1 iter_args(%a = %zero, %b = %one) -> (f32, f32) {
    %next = arith.addf %a, %b : f32
    scf.yield %b, %next : f32, f32
  }
  ssk.write %r#0, %x[%c0] : !ssk.global<f32>
  ssk.return
}

// A tile that is still needed is not overwritten.
// CHECK-LABEL: tile_needed_later(
//      CHECK:  float start[1];
// CHECK-NEXT:  ss::load_lanes<float, 32>(start, &x[0]);
// CHECK-NEXT:  float sum[1];
// CHECK-NEXT:  ss::assign(sum, start);
// CHECK-NEXT:  for (int64_t i = 0; i < 4; ++i) {
// CHECK-NEXT:    float row[1][1];
// CHECK-NEXT:    ss::load_rows<float, 32>(row, &x[i * 32], 32);
// CHECK-NEXT:    float one[1];
// CHECK-NEXT:    ss::splat(one, 1.0f);
// CHECK-NEXT:    ss::accumulate(sum, one, row);
// CHECK-NEXT:  }
//      CHECK:  ss::store_lanes<float, 32>(&x[0], sum);
// CHECK-NEXT:  ss::store_lanes<float, 32>(&x[32], start);
ssk.kernel @tile_needed_later(%x: !ssk.global<f32> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %f1 = arith.constant 1.0 : f32
  %start = ssk.load %x[%c0] : !ssk.global<f32> -> !vector loc("start")
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %start) -> (!vector) {
    %at = arith.muli %i, %c32 : index
    %row = ssk.load %x[%at] : !ssk.global<f32> -> !ssk.tile<1x32xf32, lanes = 1> loc("row")
    %one = ssk.splat %f1 : f32 -> !ssk.tile<1xf32> loc("one")
    %next = ssk.accumulate %s, %one, %row : !vector, !ssk.tile<1xf32>, !ssk.tile<1x32xf32, lanes = 1> loc("sum")
    scf.yield %next : !vector
  }
  ssk.store %sum, %x[%c0] : !vector, !ssk.global<f32>
  ssk.store %start, %x[%c32] : !vector, !ssk.global<f32>
  ssk.return
}

// One side of a branch leaves a variable as it is: the branch has no else.
// CHECK-LABEL: update_in_branch(
//      CHECK:  float sum[1] = {};
// CHECK-NEXT:  if (n > 0) {
// CHECK-NEXT:    float row[1][1];
// CHECK-NEXT:    ss::load_rows<float, 32>(row, &x[0], 32);
// CHECK-NEXT:    float one[1];
// CHECK-NEXT:    ss::splat(one, 1.0f);
// CHECK-NEXT:    ss::accumulate(sum, one, row);
// CHECK-NEXT:  }
//  CHECK-NOT:  else
//      CHECK:  ss::store_lanes<float, 32>(&x[0], sum);
ssk.kernel @update_in_branch(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i32 {ssk.name = "n"}) {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %start = ssk.splat %zero : f32 -> !vector loc("sum")
  %flag = arith.cmpi sgt, %n, %none : i32
  %sum = scf.if %flag -> (!vector) {
    %row = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<1x32xf32, lanes = 1> loc("row")
    %one = ssk.splat %f1 : f32 -> !ssk.tile<1xf32> loc("one")
    %next = ssk.accumulate %start, %one, %row : !vector, !ssk.tile<1xf32>, !ssk.tile<1x32xf32, lanes = 1>
    scf.yield %next : !vector
  } else {
    scf.yield %start : !vector
  }
  ssk.store %sum, %x[%c0] : !vector, !ssk.global<f32>
  ssk.return
}

// A branch between two expressions is one expression; both sides stay unevaluated
// where the condition does not ask for them.
// CHECK-LABEL: choice(
//      CHECK:  const float chosen = n > 0 ? x[n - 1] : 0.0f;
ssk.kernel @choice(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i64 {ssk.name = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = arith.index_cast %n : i64 to index
  %k = arith.index_cast %n : i64 to index
  %flag = arith.cmpi sgt, %m, %c0 : index
  %e = scf.if %flag -> (f32) {
    %last = arith.subi %k, %c1 : index
    %r = ssk.read %x[%last] : !ssk.global<f32>
    scf.yield %r : f32
  } else {
    scf.yield %zero : f32
  }
  ssk.write %e, %x[%c0] : !ssk.global<f32>
  ssk.return
}

// A name that C++ or the printer has gets a number; equal hints too.
// CHECK-LABEL: names(
// CHECK-NEXT:    float *__restrict__ x,
// CHECK-NEXT:    int64_t float_1,
//      CHECK:  const int64_t lane_1 = program + float_1;
// CHECK-NEXT:  const int64_t twice = lane_1 * 2;
// CHECK-NEXT:  const int64_t twice_1 = twice * twice;
//      CHECK:    x[twice_1] = 0.0f;
// CHECK-NEXT:    x[twice_1 + 1] = 1.0f;
ssk.kernel @names(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i64 {ssk.name = "float"}) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = ssk.program_id : index
  %m = arith.index_cast %n : i64 to index
  %a = arith.addi %p, %m : index loc("lane")
  %b = arith.muli %a, %c2 : index loc("twice")
  %c = arith.muli %b, %b : index loc("twice")
  ssk.write %zero, %x[%c] : !ssk.global<f32>
  %d = arith.addi %c, %c1 : index
  ssk.write %one, %x[%d] : !ssk.global<f32>
  ssk.return
}

// A kernel over a work list: every warp goes on to further programs, and the branch
// that ends the kernel ends one program.
// CHECK-LABEL: // listed: compact
//      CHECK: 1 program a block, 256 bytes of shared memory, in a loop over programs.
//      CHECK:  __shared__ listed_scratch scratch;
// CHECK-NEXT:  const int lane = ss::lane_id();
// CHECK-NEXT:  const int64_t program_end = min(programs, int64_t(work_count[0]));
// CHECK-NEXT:  const int64_t program_step = int64_t(gridDim.x);
// CHECK-NEXT:  for (int64_t program = blockIdx.x; program < program_end; program += program_step) {
// CHECK-NEXT:    __syncwarp();
//      CHECK:      continue;
//      CHECK:  }
// CHECK-NEXT:}
ssk.kernel @listed(%x: !ssk.global<f32> {ssk.name = "x"}, %n: !ssk.global<i32> {ssk.name = "work_count"}) attributes {programs_per_block = 1 : i64, role = "compact"} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %p = ssk.program_id : index
  %scratch = ssk.alloc : !ssk.shared<64xf32>
  %e = ssk.read %x[%p] : !ssk.global<f32>
  %positive = arith.cmpf ogt, %e, %zero : f32
  scf.if %positive {
    ssk.fill %scratch, %e : !ssk.shared<64xf32>
    ssk.sync
    %s = ssk.read %scratch[%c0] : !ssk.shared<64xf32>
    ssk.write %s, %x[%p] : !ssk.global<f32>
  }
  ssk.return
}

// What the loop has made sure of is not asked again; anything else is.
// CHECK-LABEL: // bounded: compact
//      CHECK:  for (int64_t program = blockIdx.x; program < program_end; program += program_step) {
// CHECK-NEXT:    if (lane == 0)
// CHECK-NEXT:      x[program] = 0.0f;
// CHECK-NEXT:  }
ssk.kernel @bounded(%x: !ssk.global<f32> {ssk.name = "x"}, %n: !ssk.global<i32> {ssk.name = "work_count"}) attributes {programs_per_block = 1 : i64, role = "compact"} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %p = ssk.program_id : index
  %count = ssk.read %n[%c0] : !ssk.global<i32>
  %end = arith.index_cast %count : i32 to index
  %isThere = arith.cmpi slt, %p, %end : index
  scf.if %isThere {
    ssk.write %zero, %x[%p] : !ssk.global<f32>
  }
  ssk.return
}

// CHECK-LABEL: // bounded_elsewhere: compact
//      CHECK:  for (int64_t program = blockIdx.x; program < program_end; program += program_step) {
// CHECK-NEXT:    if (program >= int64_t(work_count[1]))
// CHECK-NEXT:      continue;
ssk.kernel @bounded_elsewhere(%x: !ssk.global<f32> {ssk.name = "x"}, %n: !ssk.global<i32> {ssk.name = "work_count"}) attributes {programs_per_block = 1 : i64, role = "compact"} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %p = ssk.program_id : index
  %count = ssk.read %n[%c1] : !ssk.global<i32>
  %end = arith.index_cast %count : i32 to index
  %isThere = arith.cmpi slt, %p, %end : index
  scf.if %isThere {
    ssk.write %zero, %x[%p] : !ssk.global<f32>
  }
  ssk.return
}

// Several programs a block, no list.
// CHECK-LABEL: // unlisted: densify
//      CHECK:  const int64_t program_step = int64_t(gridDim.x) * 4;
// CHECK-NEXT:  for (int64_t program = int64_t(blockIdx.x) * 4 + (threadIdx.x >> 5); program < programs;
// CHECK-NEXT:      program += program_step) {
ssk.kernel @unlisted(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 4 : i64, role = "densify"} {
  %p = ssk.program_id : index
  %e = ssk.read %x[%p] : !ssk.global<f32>
  %twice = arith.addf %e, %e : f32
  ssk.write %twice, %x[%p] : !ssk.global<f32>
  ssk.return
}
