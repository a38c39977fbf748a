// RUN: ss-translate --ssk-to-cuda --split-input-file --verify-diagnostics %s

// What the printer refuses, it refuses with the operation's own place: an error of NVRTC would
// be one of the printer.

// expected-error@+1 {{holds no ssk.kernel, expected at least one: run convert-ss-to-ssk and ssk-prepare first}}
module {
}

// -----

ssk.kernel @arithmetic_on_half(%x: !ssk.global<f16> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %a = ssk.read %x[%c0] : !ssk.global<f16>
  // expected-error@+1 {{'arith.addf' op cannot be printed as CUDA C++, expected an operation of ssk, scf.for, scf.if, or scalar arithmetic on f32, f64, i32, i64, index or i1}}
  %b = arith.addf %a, %a : f16
  ssk.write %b, %x[%c0] : !ssk.global<f16>
  ssk.return
}

// -----

ssk.kernel @half_from_double(%x: !ssk.global<f16> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %a = arith.constant 1.0 : f64
  // expected-error@+1 {{'arith.truncf' op cannot be printed as CUDA C++}}
  %b = arith.truncf %a : f64 to f16
  ssk.write %b, %x[%c0] : !ssk.global<f16>
  ssk.return
}

// -----

ssk.kernel @wide_vector(%x: !ssk.global<f32> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'ssk.load' op has vector 4, expected a divisor of 2, the consecutive elements that a lane holds of '!ssk.tile<64xf32, lanes = 0>'}}
  %t = ssk.load %x[%c0] {vector = 4 : i64} : !ssk.global<f32> -> !ssk.tile<64xf32, lanes = 0>
  ssk.store %t, %x[%c0] : !ssk.tile<64xf32, lanes = 0>, !ssk.global<f32>
  ssk.return
}

// -----

ssk.kernel @wide_doubles(%x: !ssk.global<f64> {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'ssk.load' op has vector 4 of 'f64', expected at most 16 bytes}}
  %t = ssk.load %x[%c0] {vector = 4 : i64} : !ssk.global<f64> -> !ssk.tile<128xf64, lanes = 0>
  ssk.store %t, %x[%c0] : !ssk.tile<128xf64, lanes = 0>, !ssk.global<f64>
  ssk.return
}

// -----

ssk.kernel @unknown_step(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i64 {ssk.name = "n"}) {
  %c0 = arith.constant 0 : index
  %step = arith.index_cast %n : i64 to index
  // expected-error@+1 {{'scf.for' op has a step that is no positive constant, expected one}}
  scf.for %i = %c0 to %step step %step {
  }
  ssk.return
}

// -----

// expected-error@+1 {{'ssk.kernel' op needs 262144 bytes of shared memory a block (1 program), expected at most 232448: make its scratch smaller}}
ssk.kernel @too_much_scratch(%x: f32 {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %s = ssk.alloc : !ssk.shared<256x256xf32>
  ssk.fill %s, %x : !ssk.shared<256x256xf32>
  ssk.return
}

// -----

// expected-error@+1 {{'ssk.kernel' op needs 262144 bytes of shared memory a block (4 programs), expected at most 232448: lower programs_per_block}}
ssk.kernel @too_many_programs(%x: f32 {ssk.name = "x"}) attributes {programs_per_block = 4 : i64} {
  %s = ssk.alloc : !ssk.shared<128x128xf32>
  ssk.fill %s, %x : !ssk.shared<128x128xf32>
  ssk.return
}

// -----

ssk.kernel @other_dialect(%x: f32 {ssk.name = "x"}) {
  // expected-error@+1 {{'memref.alloca' op cannot be printed as CUDA C++}}
  %m = memref.alloca() : memref<4xf32>
  ssk.return
}

// -----

// Programs of a GPU run side by side: none is the next.
ssk.kernel @next_program(%x: !ssk.global<i64> {ssk.name = "x"}) {
  // expected-error@+1 {{'ssk.next_program' op cannot be printed as CUDA C++}}
  %n = ssk.next_program : index
  ssk.return
}

// -----

ssk.kernel @parts_without_scratch(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'ssk.parts' op has no scratch to add up its parts through, expected ssk-prepare to have run}}
  %sum = ssk.parts 2 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}

// -----

ssk.kernel @prefetch(%x: !ssk.global<f32> {ssk.name = "x"}) {
  %p = ssk.program_id : index
  // expected-error@+1 {{'ssk.prefetch' op cannot be printed as CUDA C++}}
  ssk.prefetch %x[%p] {count = 4 : i64} : !ssk.global<f32>
  ssk.return
}

// -----

// expected-error@+1 {{'ssk.kernel' op needs 33280 bytes of shared memory for each of 2 warps, expected at most 49152 for all of them}}
ssk.kernel @parts_of_much_scratch(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %s = ssk.alloc : !ssk.shared<64x128xf32>
  %through = ssk.alloc : !ssk.shared<128xf32>
  %sum = ssk.parts 2 through %through : !ssk.shared<128xf32> {
  ^bb0(%part: index):
    %t = ssk.load %s[%part, %c0] : !ssk.shared<64x128xf32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}

// -----

// expected-error@+1 {{'ssk.kernel' op of role 'densify' has parts, expected none: its blocks run programs in a loop, which all but the first warp of a block would leave}}
ssk.kernel @parts_in_a_loop_over_programs(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64, role = "densify"} {
  %c0 = arith.constant 0 : index
  %through = ssk.alloc : !ssk.shared<128xf32>
  %sum = ssk.parts 2 through %through : !ssk.shared<128xf32> {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}
