// RUN: ss-opt %s -split-input-file -verify-diagnostics

ssk.kernel @no_loop(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{has 'ssk.independent' = unit, expected it on an scf.for, without a value}}
  %r = ssk.read %x[%c0] {ssk.independent} : !ssk.global<f32>
  ssk.return
}

// -----

ssk.kernel @value(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{has 'ssk.independent' = 1 : i64, expected it on an scf.for, without a value}}
  scf.for %i = %c0 to %c16 step %c4 {
    ssk.write %zero, %y[%i] : !ssk.global<f32>
  } {ssk.independent = 1 : i64}
  ssk.return
}

// -----

ssk.kernel @carried(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is independent and carries values from one iteration to the next, expected none}}
  %r = scf.for %i = %c0 to %c16 step %c4 iter_args(%s = %zero) -> (f32) {
    scf.yield %s : f32
  } {ssk.independent}
  ssk.return
}

// -----

ssk.kernel @from_one(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is independent, expected a constant number of iterations from 0 on}}
  scf.for %i = %c1 to %c16 step %c4 {
    ssk.write %zero, %y[%i] : !ssk.global<f32>
  } {ssk.independent}
  ssk.return
}

// -----

ssk.kernel @uneven(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is independent, expected a constant number of iterations from 0 on}}
  scf.for %i = %c0 to %c16 step %c3 {
    ssk.write %zero, %y[%i] : !ssk.global<f32>
  } {ssk.independent}
  ssk.return
}

// -----

ssk.kernel @variable(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %p = ssk.program_id : index
  // expected-error @below {{is independent, expected a constant number of iterations from 0 on}}
  scf.for %i = %c0 to %p step %c1 {
    ssk.write %zero, %y[%i] : !ssk.global<f32>
  } {ssk.independent}
  ssk.return
}

// -----

ssk.kernel @followed(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is independent and not the last of its block, expected nothing behind it}}
  scf.for %i = %c0 to %c16 step %c4 {
    ssk.write %zero, %y[%i] : !ssk.global<f32>
  } {ssk.independent}
  ssk.write %zero, %x[%c0] : !ssk.global<f32>
  ssk.return
}

// -----

ssk.kernel @in_a_loop(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c4 step %c1 {
    // expected-error @below {{is in scf.for, expected a kernel and branches alone around it}}
    scf.for %i = %c0 to %c16 step %c4 {
      ssk.write %zero, %y[%i] : !ssk.global<f32>
    } {ssk.independent}
  }
  ssk.return
}

// -----

ssk.kernel @after_scratch(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %scratch = ssk.alloc : !ssk.shared<4xf32>
  // expected-note @below {{it is written here}}
  ssk.fill %scratch, %zero : !ssk.shared<4xf32>
  // expected-error @below {{comes after a write to memory, expected none before it or in its place: all warps that run iterations would make it}}
  scf.for %i = %c0 to %c16 step %c4 {
    ssk.write %zero, %y[%i] : !ssk.global<f32>
  } {ssk.independent}
  ssk.return
}

// -----

ssk.kernel @beside_a_write(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %p = ssk.program_id : index
  %some = arith.cmpi eq, %p, %c0 : index
  scf.if %some {
    // expected-note @below {{it is written here}}
    ssk.write %zero, %y[%c0] : !ssk.global<f32>
  } else {
    // expected-error @below {{comes after a write to memory, expected none before it or in its place: all warps that run iterations would make it}}
    scf.for %i = %c0 to %c16 step %c4 {
      ssk.write %zero, %y[%i] : !ssk.global<f32>
    } {ssk.independent}
  }
  ssk.return
}
