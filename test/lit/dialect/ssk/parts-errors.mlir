// RUN: ss-opt %s -split-input-file -verify-diagnostics

ssk.kernel @one_part(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{has 1 parts, expected 2 to 8}}
  %sum = ssk.parts 1 {
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

ssk.kernel @nine_parts(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{has 9 parts, expected 2 to 8}}
  %sum = ssk.parts 9 {
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

ssk.kernel @rows(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{adds up '!ssk.tile<4x128xf32, lanes = 1>', expected tiles of f32 of one dimension, over the lanes}}
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<4x128xf32, lanes = 1>
    ssk.yield_part %t : !ssk.tile<4x128xf32, lanes = 1>
  } last {
  ^bb0(%a: !ssk.tile<4x128xf32, lanes = 1>):
    ssk.yield_part %a : !ssk.tile<4x128xf32, lanes = 1>
  } : !ssk.tile<4x128xf32, lanes = 1>
  ssk.return
}

// -----

ssk.kernel @other_scratch(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %s = ssk.alloc : !ssk.shared<64xf32>
  // expected-error @below {{passes '!ssk.tile<128xf32, lanes = 0>' through '!ssk.shared<64xf32>', expected scratch of the same elements}}
  %sum = ssk.parts 4 through %s : !ssk.shared<64xf32> {
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

ssk.kernel @too_much_scratch(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %s = ssk.alloc : !ssk.shared<128xf32>
  // expected-error @below {{has 2 pieces of scratch for 1 sums, expected one for each}}
  %sum = ssk.parts 4 through %s, %s : !ssk.shared<128xf32>, !ssk.shared<128xf32> {
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

ssk.kernel @in_a_loop(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c1 step %c1 {
  // expected-error @below {{is in scf.for, expected a kernel and branches alone around it}}
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  }
  ssk.return
}

// -----

ssk.kernel @in_a_branch_before_the_end(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %yes = arith.constant true
  scf.if %yes {
  // expected-error @below {{is in a branch that something follows, or that has results, expected one that ends its block}}
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  }
  ssk.write %zero, %y[%c0] : !ssk.global<f32>
  ssk.return
}

// -----

ssk.kernel @after_a_write(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-note @below {{it is written here}}
  ssk.write %zero, %y[%c0] : !ssk.global<f32>
  // expected-error @below {{comes after a write to a global, expected none before it: all warps of a program would make it}}
  %sum = ssk.parts 4 {
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

ssk.kernel @that_writes(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{writes memory in its body, expected none: parts may run at the same time}}
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    // expected-note @below {{it is written here}}
    ssk.store %t, %y[%c0] : !ssk.tile<128xf32, lanes = 0>, !ssk.global<f32>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}

// -----

ssk.kernel @that_writes_scratch(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %s = ssk.alloc : !ssk.shared<128xf32>
  // expected-error @below {{writes memory in its body, expected none: parts may run at the same time}}
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    // expected-note @below {{it is written here}}
    ssk.store %a, %s[%c0] : !ssk.tile<128xf32, lanes = 0>, !ssk.shared<128xf32>
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}

// -----

ssk.kernel @of_several_programs(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is in a kernel of 4 programs a block, expected 1: the warps of a block are those of a program}}
  %sum = ssk.parts 4 {
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

ssk.kernel @of_numbers(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{has a body of 1 arguments, expected one: the part's number, index}}
  %sum = ssk.parts 4 {
  ^bb0(%part: i32):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}

// -----

ssk.kernel @of_another_last_body(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{passes the last body types other than those of its results, expected the same}}
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<64xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<64xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}

// -----

ssk.kernel @of_other_types(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{yields types other than those of its results, expected the same}}
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<64xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<64xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}

// -----

ssk.kernel @twice(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is not the only one of its kernel, expected one}}
  %sum = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  %sum2 = ssk.parts 4 {
  ^bb0(%part: index):
    %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.yield_part %t : !ssk.tile<128xf32, lanes = 0>
  } last {
  ^bb0(%a: !ssk.tile<128xf32, lanes = 0>):
    ssk.yield_part %a : !ssk.tile<128xf32, lanes = 0>
  } : !ssk.tile<128xf32, lanes = 0>
  ssk.return
}
