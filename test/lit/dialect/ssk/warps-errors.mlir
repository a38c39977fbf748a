// RUN: ss-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{has 0 warps a program, expected 1 to 16}}
ssk.kernel @none() attributes {programs_per_block = 1 : i64, warps = 0 : i64} {
  ssk.return
}

// -----

// expected-error @below {{has 17 warps a program, expected 1 to 16}}
ssk.kernel @many() attributes {programs_per_block = 1 : i64, warps = 17 : i64} {
  ssk.return
}

// -----

// expected-error @below {{has 4 warps a program and 2 programs a block, expected 1: the warps of a block are those of a program}}
ssk.kernel @programs() attributes {programs_per_block = 2 : i64, warps = 4 : i64} {
  ssk.return
}

// -----

ssk.kernel @routine(%m: i32 {ssk.name = "m"}) attributes {programs_per_block = 1 : i64, warps = 4 : i64} {
  %a = ssk.alloc : !ssk.shared<4x4xf64>
  // expected-error @below {{is done by one warp, in a kernel of 4 warps a program; expected a kernel of one}}
  %0 = ssk.call @ss_orthogonalize(%m, %a, %a) reads [1] writes [1, 2] : (i32, !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>) -> i32
  ssk.return
}

// -----

ssk.kernel @copies() attributes {programs_per_block = 1 : i64, warps = 4 : i64} {
  // expected-error @below {{is done by one warp, in a kernel of 4 warps a program; expected a kernel of one}}
  ssk.wait_copies
  ssk.return
}

// -----

ssk.kernel @in_place() attributes {programs_per_block = 1 : i64, warps = 4 : i64} {
  %a = ssk.alloc : !ssk.shared<4x4xf64>
  %b = ssk.alloc : !ssk.shared<4x8xf32>
  // expected-error @below {{writes to a factor, in a kernel of 4 warps a program; expected other scratch: one warp may read what another has written already}}
  ssk.matmul %a, %b into %b : !ssk.shared<4x4xf64>, !ssk.shared<4x8xf32>, !ssk.shared<4x8xf32>
  ssk.return
}

// -----

ssk.kernel @accumulates() {
  %a = ssk.alloc : !ssk.shared<4x4xf64>
  %b = ssk.alloc : !ssk.shared<4x8xf32>
  // expected-error @below {{writes to a factor and accumulates, expected other scratch}}
  ssk.matmul %a, %b into %b {accumulate} : !ssk.shared<4x4xf64>, !ssk.shared<4x8xf32>, !ssk.shared<4x8xf32>
  ssk.return
}

// -----

ssk.kernel @limited(%n: i32 {ssk.name = "n"}) {
  %limit = arith.index_cast %n : i32 to index
  %a = ssk.alloc : !ssk.shared<4x4xf64>
  %b = ssk.alloc : !ssk.shared<4x8xf32>
  // expected-error @below {{writes to a factor and has a limit, expected other scratch}}
  ssk.matmul %a, %b into %b limit %limit : !ssk.shared<4x4xf64>, !ssk.shared<4x8xf32>, !ssk.shared<4x8xf32>
  ssk.return
}

// -----

ssk.kernel @more_rows() {
  %a = ssk.alloc : !ssk.shared<8x4xf64>
  %b = ssk.alloc : !ssk.shared<4x8xf32>
  %c = ssk.alloc : !ssk.shared<4x8xf32>
  // expected-error @below {{expected shapes m x k, k x n and m x n}}
  ssk.matmul %a, %b into %c : !ssk.shared<8x4xf64>, !ssk.shared<4x8xf32>, !ssk.shared<4x8xf32>
  ssk.return
}

// -----

ssk.kernel @no_loop(%x: !ssk.global<f32> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{has 'ssk.over_warps', expected it on an scf.for of a kernel alone}}
  %0 = ssk.read %x[%c0] {ssk.over_warps} : !ssk.global<f32>
  ssk.return
}

// -----

ssk.kernel @carries(%x: !ssk.global<f32> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is over the warps and has results, expected none: its iterations know nothing of each other}}
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
    %e = ssk.read %x[%i] : !ssk.global<f32>
    %t = arith.addf %s, %e : f32
    scf.yield %t : f32
  } {ssk.over_warps}
  ssk.return
}

// -----

ssk.kernel @together() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = ssk.alloc : !ssk.shared<4x4xf64>
  %b = ssk.alloc : !ssk.shared<4x4xf64>
  // expected-error @below {{is over the warps and holds what all warps of a program do together, expected loads, stores and arithmetic}}
  scf.for %i = %c0 to %c8 step %c1 {
    // expected-note @below {{it is here}}
    ssk.matmul %a, %a into %b : !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>
  } {ssk.over_warps}
  ssk.return
}

// -----

ssk.kernel @reads_and_writes(%x: !ssk.global<f32> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error @below {{is over the warps and reads memory that it writes, expected none: other warps may write it at the same time}}
  scf.for %i = %c0 to %c8 step %c1 {
    %e = ssk.read %x[%c0] : !ssk.global<f32>
    // expected-note @below {{it is written here}}
    ssk.write %e, %x[%i] : !ssk.global<f32>
  } {ssk.over_warps}
  ssk.return
}
