// RUN: ss-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{element type is 'i8', expected f32, f64, f16, bf16, f8E4M3FN, i32 or i64}}
ssk.kernel @type(%a: !ssk.global<i8> {ssk.name = "a"}) { ssk.return }

// -----

ssk.kernel @rank() {
  // expected-error@+1 {{has 3 dimensions, expected 1 or 2}}
  %0 = ssk.alloc : !ssk.shared<2x2x2xf32>
  ssk.return
}

// -----

ssk.kernel @extent() {
  // expected-error@+1 {{has a dimension of 0, expected 1 to 1048576}}
  %0 = ssk.alloc : !ssk.shared<0xf32>
  ssk.return
}

// -----

ssk.kernel @lanes(%x: f32 {ssk.name = "x"}) {
  // expected-error@+1 {{lanes is 1, expected one of the tile's 1 dimensions}}
  %0 = ssk.splat %x : f32 -> !ssk.tile<4xf32, lanes = 1>
  ssk.return
}

// -----

ssk.kernel @negative_lanes(%x: f32 {ssk.name = "x"}) {
  // expected-error@+1 {{lanes is -1, expected a dimension of the tile}}
  %0 = ssk.splat %x : f32 -> !ssk.tile<4xf32, lanes = -1>
  ssk.return
}

// -----

// expected-error@+1 {{argument 0 has type 'index', expected !ssk.global, i32, i64 or f32}}
ssk.kernel @argument(%n: index {ssk.name = "n"}) { ssk.return }

// -----

// expected-error@+1 {{argument 0 has no 'ssk.name', expected one: the runtime binds arguments by name}}
ssk.kernel @unnamed(%n: i32) { ssk.return }

// -----

// expected-error@+1 {{argument 1 has the name 'n' of an earlier argument, expected different names}}
ssk.kernel @twice(%n: i32 {ssk.name = "n"}, %m: i32 {ssk.name = "n"}) { ssk.return }

// -----

// expected-error@+1 {{argument 0: 'ssk.name' is "2n", expected a string that is a C identifier}}
ssk.kernel @identifier(%n: i32 {ssk.name = "2n"}) { ssk.return }

// -----

// expected-error@+1 {{argument 0: 'ssk.divisible_by' is 0 : i64, expected a positive number of type i64}}
ssk.kernel @divisor(%n: i64 {ssk.name = "n", ssk.divisible_by = 0 : i64}) { ssk.return }

// -----

// expected-error@+1 {{argument 0 has 'ssk.divisible_by' and type 'f32', expected i32 or i64}}
ssk.kernel @divisor(%x: f32 {ssk.name = "x", ssk.divisible_by = 4 : i64}) { ssk.return }

// -----

// expected-error@+1 {{argument 0: unknown attribute 'ssk.size', expected 'ssk.name', 'ssk.may_alias' or 'ssk.divisible_by'}}
ssk.kernel @unknown(%n: i32 {ssk.name = "n", ssk.size = 3 : i64}) { ssk.return }

// -----

// expected-error@+1 {{argument 0 has 'ssk.may_alias' and type 'i32', expected !ssk.global}}
ssk.kernel @alias(%n: i32 {ssk.name = "n", ssk.may_alias}) { ssk.return }

// -----

// expected-error@+1 {{argument 0: 'ssk.may_alias' is 1 : i64, expected no value}}
ssk.kernel @alias(%n: i32 {ssk.name = "n", ssk.may_alias = 1 : i64}) { ssk.return }

// -----

// expected-error@+1 {{programs_per_block is 0, expected 1 to 32}}
ssk.kernel @block() attributes {programs_per_block = 0 : i64} { ssk.return }

// -----

// expected-error@+1 {{min_blocks is 33, expected 1 to 32}}
ssk.kernel @resident() attributes {min_blocks = 33 : i64} { ssk.return }

// -----

// expected-error@+1 {{has results, expected none: write to a global instead}}
ssk.kernel @result() -> f32 { ssk.return }

// -----

// expected-error@+1 {{does not end with 'ssk.return'}}
ssk.kernel @open() {
  llvm.unreachable
}

// -----

ssk.kernel @indices(%a: !ssk.global<f32> {ssk.name = "a"}) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{has 2 indices for '!ssk.global<f32>', expected 1}}
  %x = ssk.read %a[%c0, %c0] : !ssk.global<f32>
  ssk.return
}

// -----

ssk.kernel @shared_indices(%x: f32 {ssk.name = "x"}) {
  %c0 = arith.constant 0 : index
  %s = ssk.alloc : !ssk.shared<4x4xf32>
  // expected-error@+1 {{has 1 indices for '!ssk.shared<4x4xf32>', expected 2}}
  ssk.write %x, %s[%c0] : !ssk.shared<4x4xf32>
  ssk.return
}

// -----

ssk.kernel @nested() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error@+1 {{expects parent op 'ssk.kernel'}}
    %s = ssk.alloc : !ssk.shared<4x4xf32>
  }
  ssk.return
}

// -----

ssk.kernel @convert(%a: !ssk.global<f16> {ssk.name = "a"}) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{moves elements of 'f32' and 'f16', expected the same element type: convert with ssk.map}}
  %t = ssk.load %a[%c0] : !ssk.global<f16> -> !ssk.tile<4xf32>
  ssk.return
}

// -----

ssk.kernel @stride(%a: !ssk.global<f32> {ssk.name = "a"}) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{has a stride, expected it only for a tile of two dimensions in a global}}
  %t = ssk.load %a[%c0] stride %c0 : !ssk.global<f32> -> !ssk.tile<4xf32>
  ssk.return
}

// -----

ssk.kernel @larger() {
  %c0 = arith.constant 0 : index
  %s = ssk.alloc : !ssk.shared<4x4xf32>
  // expected-error@+1 {{has a tile '!ssk.tile<8xf32>' larger than the scratch '!ssk.shared<4x4xf32>'}}
  %t = ssk.load %s[%c0, %c0] : !ssk.shared<4x4xf32> -> !ssk.tile<8xf32>
  ssk.return
}

// -----

ssk.kernel @flat() {
  %c0 = arith.constant 0 : index
  %s = ssk.alloc : !ssk.shared<16xf32>
  // expected-error@+1 {{has a tile of two dimensions in scratch of one, expected scratch of two dimensions}}
  %t = ssk.load %s[%c0] : !ssk.shared<16xf32> -> !ssk.tile<2x8xf32>
  ssk.return
}

// -----

ssk.kernel @vector(%a: !ssk.global<f32> {ssk.name = "a"}) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{vector is 3, expected 1, 2, 4, 8 or 16}}
  %t = ssk.load %a[%c0] {vector = 3 : i64} : !ssk.global<f32> -> !ssk.tile<6xf32>
  ssk.return
}

// -----

ssk.kernel @splat(%x: f32 {ssk.name = "x"}) {
  // expected-error@+1 {{spreads 'f32' over '!ssk.tile<4xf64>', expected the tile's element type}}
  %0 = ssk.splat %x : f32 -> !ssk.tile<4xf64>
  ssk.return
}

// -----

ssk.kernel @map_lists(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<4xf32>
  // expected-error@+1 {{has 1 operands and 0 lists in dims, expected one for each}}
  %b = ssk.map (%a) dims [] : (!ssk.tile<4xf32>) -> !ssk.tile<4xf32> {
  ^bb0(%e: f32):
    ssk.yield %e : f32
  }
  ssk.return
}

// -----

ssk.kernel @map_rank(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<4xf32>
  // expected-error@+1 {{operand 0 has 1 dimensions and dims lists 2, expected one for each}}
  %b = ssk.map (%a) dims [[0, 1]] : (!ssk.tile<4xf32>) -> !ssk.tile<4x4xf32> {
  ^bb0(%e: f32):
    ssk.yield %e : f32
  }
  ssk.return
}

// -----

ssk.kernel @map_order(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<4x4xf32>
  // expected-error@+1 {{operand 0 covers dimension 0, expected dimensions of the result in ascending order}}
  %b = ssk.map (%a) dims [[1, 0]] : (!ssk.tile<4x4xf32>) -> !ssk.tile<4x4xf32> {
  ^bb0(%e: f32):
    ssk.yield %e : f32
  }
  ssk.return
}

// -----

ssk.kernel @map_extent(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<4xf32>
  // expected-error@+1 {{operand 0 has 4 elements along result dimension 1, expected 8}}
  %b = ssk.map (%a) dims [[1]] : (!ssk.tile<4xf32>) -> !ssk.tile<4x8xf32> {
  ^bb0(%e: f32):
    ssk.yield %e : f32
  }
  ssk.return
}

// -----

ssk.kernel @map_lanes(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<8xf32>
  // expected-error@+1 {{disagree about the lanes of result dimension 1}}
  %b = ssk.map (%a) dims [[1]] : (!ssk.tile<8xf32>) -> !ssk.tile<4x8xf32, lanes = 1> {
  ^bb0(%e: f32):
    ssk.yield %e : f32
  }
  ssk.return
}

// -----

ssk.kernel @map_argument(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<8xf32>
  // expected-error@+1 {{body argument 0 is 'f64', expected the operand's element type 'f32'}}
  %b = ssk.map (%a) dims [[0]] : (!ssk.tile<8xf32>) -> !ssk.tile<8xf64> {
  ^bb0(%e: f64):
    ssk.yield %e : f64
  }
  ssk.return
}

// -----

ssk.kernel @map_yield(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<8xf32>
  // expected-error@+1 {{yields 'f32', expected the result's element type 'f64'}}
  %b = ssk.map (%a) dims [[0]] : (!ssk.tile<8xf32>) -> !ssk.tile<8xf64> {
  ^bb0(%e: f32):
    ssk.yield %e : f32
  }
  ssk.return
}

// -----

ssk.kernel @map_body(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<8xf32>
  %b = ssk.map (%a) dims [[0]] : (!ssk.tile<8xf32>) -> !ssk.tile<8xf32> {
  ^bb0(%e: f32):
    // expected-error@+1 {{'ssk.program_id' in the body of ssk.map, expected operations of arith and math}}
    %p = ssk.program_id : index
    ssk.yield %e : f32
  }
  ssk.return
}

// -----

ssk.kernel @axis(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<8xf32>
  // expected-error@+1 {{axis is 1, expected one of the tile's 1 dimensions}}
  %b = ssk.reduce add %a axis 1 : !ssk.tile<8xf32> -> f32
  ssk.return
}

// -----

ssk.kernel @reduced(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<4x8xf32, lanes = 1>
  // expected-error@+1 {{has result '!ssk.tile<8xf32>', expected '!ssk.tile<8xf32, lanes = 0>'}}
  %b = ssk.reduce add %a axis 0 : !ssk.tile<4x8xf32, lanes = 1> -> !ssk.tile<8xf32>
  ssk.return
}

// -----

ssk.kernel @reduce_half(%a: !ssk.global<bf16> {ssk.name = "a"}) {
  %c0 = arith.constant 0 : index
  %t = ssk.load %a[%c0] : !ssk.global<bf16> -> !ssk.tile<4xbf16>
  // expected-error@+1 {{reduces 'bf16', expected f32, f64, i32 or i64: convert with ssk.map}}
  %b = ssk.reduce add %t axis 0 : !ssk.tile<4xbf16> -> bf16
  ssk.return
}

// -----

ssk.kernel @dot(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<8xf32, lanes = 0>
  %b = ssk.splat %x : f32 -> !ssk.tile<4xf32, lanes = 0>
  // expected-error@+1 {{expected f32 or f64 tiles whose last dimension is the lane axis, of equal length}}
  %c = ssk.dot %a, %b : !ssk.tile<8xf32, lanes = 0>, !ssk.tile<4xf32, lanes = 0> -> f32
  ssk.return
}

// -----

ssk.kernel @accumulate(%x: f32 {ssk.name = "x"}) {
  %a = ssk.splat %x : f32 -> !ssk.tile<8xf32, lanes = 0>
  %r = ssk.splat %x : f32 -> !ssk.tile<4x8xf32, lanes = 1>
  // expected-error@+1 {{expected tile<N, lanes = 0>, tile<R> and tile<RxN, lanes = 1> of f32 or f64}}
  %c = ssk.accumulate %a, %a, %r : !ssk.tile<8xf32, lanes = 0>, !ssk.tile<8xf32, lanes = 0>, !ssk.tile<4x8xf32, lanes = 1>
  ssk.return
}

// -----

ssk.kernel @matmul() {
  %a = ssk.alloc : !ssk.shared<4x8xf32>
  %c = ssk.alloc : !ssk.shared<4x4xf64>
  // expected-error@+1 {{expected shapes m x k, k x n and m x n}}
  ssk.matmul %a, %a into %c : !ssk.shared<4x8xf32>, !ssk.shared<4x8xf32>, !ssk.shared<4x4xf64>
  ssk.return
}

// -----

ssk.kernel @matmul_alias() {
  %a = ssk.alloc : !ssk.shared<4x4xf32>
  // expected-error@+1 {{writes to a factor that is transposed or is both factors, expected other scratch}}
  ssk.matmul %a, %a into %a : !ssk.shared<4x4xf32>, !ssk.shared<4x4xf32>, !ssk.shared<4x4xf32>
  ssk.return
}

// -----

ssk.kernel @matmul_into_transposed() {
  %a = ssk.alloc : !ssk.shared<4x4xf64>
  %b = ssk.alloc : !ssk.shared<4x4xf64>
  // expected-error@+1 {{writes to a factor that is transposed or is both factors, expected other scratch}}
  ssk.matmul %a, %b into %b {transpose_b} : !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>
  ssk.return
}

// -----

ssk.kernel @matmul_type() {
  %a = ssk.alloc : !ssk.shared<4x4xi32>
  %c = ssk.alloc : !ssk.shared<4x4xf32>
  // expected-error@+1 {{has an operand '!ssk.shared<4x4xi32>', expected two dimensions of f32 or f64}}
  ssk.matmul %a, %a into %c : !ssk.shared<4x4xi32>, !ssk.shared<4x4xi32>, !ssk.shared<4x4xf32>
  ssk.return
}

// -----

ssk.kernel @top_k() {
  %n = arith.constant 4 : index
  %w = ssk.alloc : !ssk.shared<4xf32>
  %i = ssk.alloc : !ssk.shared<8xi32>
  // expected-error@+1 {{selects 8 of 4 values, expected at most all of them}}
  ssk.top_k %w count %n into %i : !ssk.shared<4xf32>, !ssk.shared<8xi32>
  ssk.return
}

// -----

ssk.kernel @top_k_types() {
  %n = arith.constant 4 : index
  %w = ssk.alloc : !ssk.shared<4xf32>
  %i = ssk.alloc : !ssk.shared<4xi64>
  // expected-error@+1 {{has indices '!ssk.shared<4xi64>', expected i32 of one dimension}}
  ssk.top_k %w count %n into %i : !ssk.shared<4xf32>, !ssk.shared<4xi64>
  ssk.return
}

// -----

ssk.kernel @call_name(%m: i32 {ssk.name = "m"}) {
  // expected-error@+1 {{calls 'ss_missing', expected a routine listed in sinkstate/routines.def}}
  %0 = ssk.call @ss_missing(%m) reads [] writes [] : (i32) -> i32
  ssk.return
}

// -----

ssk.kernel @call_count(%m: i32 {ssk.name = "m"}) {
  // expected-error@+1 {{passes 1 arguments to 'ss_orthogonalize', expected 3}}
  %0 = ssk.call @ss_orthogonalize(%m) reads [] writes [] : (i32) -> i32
  ssk.return
}

// -----

ssk.kernel @call_type(%m: i32 {ssk.name = "m"}) {
  %a = ssk.alloc : !ssk.shared<4x4xf32>
  // expected-error@+1 {{argument 1 of 'ss_orthogonalize' is '!ssk.shared<4x4xf32>', expected scratch of f64}}
  %0 = ssk.call @ss_orthogonalize(%m, %a, %a) reads [1] writes [2] : (i32, !ssk.shared<4x4xf32>, !ssk.shared<4x4xf32>) -> i32
  ssk.return
}

// -----

ssk.kernel @call_effects(%m: i32 {ssk.name = "m"}) {
  %a = ssk.alloc : !ssk.shared<4x4xf64>
  // expected-error@+1 {{argument 2 is scratch and in neither reads nor writes, expected its effect to be declared}}
  %0 = ssk.call @ss_orthogonalize(%m, %a, %a) reads [1] writes [1] : (i32, !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>) -> i32
  ssk.return
}

// -----

ssk.kernel @call_operand(%m: i32 {ssk.name = "m"}) {
  %a = ssk.alloc : !ssk.shared<4x4xf64>
  // expected-error@+1 {{reads names operand 0, expected the number of an operand that is scratch}}
  %0 = ssk.call @ss_orthogonalize(%m, %a, %a) reads [0] writes [1, 2] : (i32, !ssk.shared<4x4xf64>, !ssk.shared<4x4xf64>) -> i32
  ssk.return
}

// -----

ssk.kernel @pitch_of_a_vector() {
  // expected-error @below {{has a pitch, expected it only for two dimensions}}
  %s = ssk.alloc {pitch = 32 : i64} : !ssk.shared<16xf32>
  ssk.return
}

// -----

ssk.kernel @narrow_pitch() {
  // expected-error @below {{has a pitch of 100, expected at least the 128 elements of a row}}
  %s = ssk.alloc {pitch = 100 : i64} : !ssk.shared<16x128xf32>
  ssk.return
}

// -----

ssk.kernel @copy_of_other_elements(%rows: !ssk.global<f16> {ssk.name = "rows"}) {
  %c0 = arith.constant 0 : index
  %s = ssk.alloc : !ssk.shared<16xf32>
  // expected-error @below {{copies elements of 'f16' to '!ssk.shared<16xf32>', expected the same element type}}
  ssk.copy %rows[%c0] to %s : !ssk.global<f16>, !ssk.shared<16xf32>
  ssk.return
}

// -----

ssk.kernel @copy_without_row(%rows: !ssk.global<f32> {ssk.name = "rows"}) {
  %c0 = arith.constant 0 : index
  %s = ssk.alloc : !ssk.shared<4x16xf32>
  // expected-error @below {{has no row of '!ssk.shared<4x16xf32>', expected one exactly for two dimensions}}
  ssk.copy %rows[%c0] to %s : !ssk.global<f32>, !ssk.shared<4x16xf32>
  ssk.return
}

// -----

ssk.kernel @wide_copy(%rows: !ssk.global<f32> {ssk.name = "rows"}) {
  %c0 = arith.constant 0 : index
  %s = ssk.alloc : !ssk.shared<16xf32>
  // expected-error @below {{vector is 8, expected 1, 2 or 4}}
  ssk.copy %rows[%c0] to %s {vector = 8 : i64} : !ssk.global<f32>, !ssk.shared<16xf32>
  ssk.return
}

// -----

ssk.kernel @iota_of_floats() {
  // expected-error@+1 {{numbers the elements of '!ssk.tile<4xf32>', expected a tile of one dimension of i32}}
  %t = ssk.iota : !ssk.tile<4xf32>
  ssk.return
}

// -----

ssk.kernel @iota_of_rows() {
  // expected-error@+1 {{expected a tile of one dimension of i32}}
  %t = ssk.iota : !ssk.tile<4x8xi32, lanes = 1>
  ssk.return
}

// -----

ssk.kernel @prefetch(%a: !ssk.global<f32> {ssk.name = "a"}) {
  %p = ssk.program_id : index
  // expected-error@+1 {{attribute 'count' failed to satisfy constraint}}
  ssk.prefetch %a[%p] {count = 0 : i64} : !ssk.global<f32>
  ssk.return
}
