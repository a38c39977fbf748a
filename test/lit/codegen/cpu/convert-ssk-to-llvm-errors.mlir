// RUN: ss-opt %s -convert-ssk-to-llvm -split-input-file -verify-diagnostics
// RUN: not ss-opt %s -convert-ssk-to-llvm=vector-width=5 2>&1 | FileCheck %s
// CHECK: vector-width is 5, expected 4, 8 or 16

ssk.kernel @library(%x: f32 {ssk.name = "x"}) {
  // expected-error@+1 {{'math.tanh' on 'f32' would need a C library, expected exp, log, log1p or rsqrt of f32}}
  %y = math.tanh %x : f32
  ssk.return
}

// -----

ssk.kernel @double_exp(%x: f32 {ssk.name = "x"}) {
  %d = arith.extf %x : f32 to f64
  // expected-error@+1 {{'math.exp' on 'f64' would need a C library}}
  %y = math.exp %d : f64
  ssk.return
}

// -----

ssk.kernel @in_map(%x: f32 {ssk.name = "x"}) {
  %t = ssk.splat %x : f32 -> !ssk.tile<8xf32, lanes = 0>
  %u = ssk.map (%t) dims [[0]] : (!ssk.tile<8xf32, lanes = 0>) -> !ssk.tile<8xf32, lanes = 0> {
  ^bb0(%e: f32):
    // expected-error@+1 {{'arith.remf' on 'f32' would need a C library}}
    %y = arith.remf %e, %x : f32
    ssk.yield %y : f32
  }
  ssk.return
}

// -----

ssk.kernel @foreign() {
  // expected-error@+1 {{'memref.alloc' in a kernel, expected ssk, scf.for, scf.if or arith and math on scalars}}
  %m = memref.alloc() : memref<4xf32>
  ssk.return
}

// -----

ssk.kernel @loop() {
  %true = arith.constant true
  // expected-error@+1 {{'scf.while' in a kernel, expected ssk, scf.for, scf.if or arith and math on scalars}}
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    scf.yield
  }
  ssk.return
}
