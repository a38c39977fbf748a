// Everything that operations of a compaction can get wrong.
// RUN: ss-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !D) {
  // expected-error @+1 {{has a dense state, expected form = factored}}
  %0, %1 = ss.split %s : !D -> !A, !D
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  // expected-error @+1 {{has 'active' of type '!ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>', expected '!ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>' (active rows of the state's sizes)}}
  %0, %1 = ss.split %s : !S -> !F, !S
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S, %a: !F) {
  // expected-error @+1 {{has 'active' of type '!ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>', expected}}
  %0 = ss.concat %a, %s : !F, !S -> !F
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S, %a: !A) {
  // expected-error @+1 {{has 'block' of type '!ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>', expected '!ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>' (active + buffer + draft rows of the state's sizes)}}
  %0 = ss.concat %a, %s : !A, !S -> !A
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%b: !F) {
  // expected-error @+1 {{has 'left' of type 'tensor<4x8x8xf64>', expected 'tensor<4x16x16xf64>' (heads, rows, rows)}}
  %0, %1, %2 = ss.orthogonalize %b : !F -> !F, tensor<4x8x8xf64>, tensor<4x16x16xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%b: !F) {
  // expected-error @+1 {{has 'right' of type 'tensor<4x8x8xf64>', expected}}
  %0, %1, %2 = ss.orthogonalize %b : !F -> !F, tensor<4x16x16xf64>, tensor<4x8x8xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%b: !F) {
  // expected-error @+1 {{failed to verify that all of {block, basis} have same type}}
  %0, %1, %2 = ss.orthogonalize %b : !F -> !A, tensor<4x16x16xf64>, tensor<4x16x16xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%b: !F, %l: tensor<4x8x8xf64>) {
  // expected-error @+1 {{has 'left' of type 'tensor<4x8x8xf64>', expected 'tensor<4x16x16xf64>' (heads, rows, rows)}}
  %0 = ss.core %l, %b, %l : tensor<4x8x8xf64>, !F, tensor<4x8x8xf64> -> tensor<4x8x8xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%c: tensor<4x16xf64>) {
  // expected-error @+1 {{has 'core' of type 'tensor<4x16xf64>', expected [heads, m, m]}}
  %0, %1, %2 = ss.core_svd %c : tensor<4x16xf64> -> tensor<4x16xf64>, tensor<4x16xf64>, tensor<4x16xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%c: tensor<4x16x16xf64>) {
  // expected-error @+1 {{has 'sigma' of type 'tensor<4x8xf64>', expected 'tensor<4x16xf64>' (heads, m)}}
  %0, %1, %2 = ss.core_svd %c : tensor<4x16x16xf64> -> tensor<4x16x16xf64>, tensor<4x8xf64>, tensor<4x16x16xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%q: !F, %x: tensor<4x8x8xf64>, %s: tensor<4x16xf64>, %y: tensor<4x16x16xf64>) {
  // expected-error @+1 {{has 'x' of type 'tensor<4x8x8xf64>', expected}}
  %0 = ss.rotate %q, %x, %s, %y : !F, tensor<4x8x8xf64>, tensor<4x16xf64>, tensor<4x16x16xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%q: !F, %x: tensor<4x16x16xf64>, %s: tensor<4x16xf64>, %y: tensor<4x8x8xf64>) {
  // expected-error @+1 {{has 'y' of type 'tensor<4x8x8xf64>', expected}}
  %0 = ss.rotate %q, %x, %s, %y : !F, tensor<4x16x16xf64>, tensor<4x16xf64>, tensor<4x8x8xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%q: !F, %x: tensor<4x16x16xf64>, %s: tensor<4x8xf64>) {
  // expected-error @+1 {{has 'sigma' of type 'tensor<4x8xf64>', expected 'tensor<4x16xf64>' (heads, rows)}}
  %0 = ss.rotate %q, %x, %s, %x : !F, tensor<4x16x16xf64>, tensor<4x8xf64>, tensor<4x16x16xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%r: !A, %s: !S) {
  // expected-error @+1 {{has 'rotated' of type '!ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>', expected}}
  %0 = ss.merge %r, %s : !A, !S
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%r: !F, %s: !D) {
  // expected-error @+1 {{has a dense state, expected form = factored}}
  %0 = ss.merge %r, %s : !F, !D
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !D) {
  // expected-error @+1 {{has a dense state, expected form = factored}}
  %0 = ss.truncate %s policy <relative, 3.0e-2> : !D
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  // expected-error @+1 {{keeps a fixed rank of 97, expected at most the state's, 96}}
  %0 = ss.truncate %s policy <fixed, 97> : !S
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%d: tensor<4x128x80xf32>) {
  // expected-error @+1 {{has 'dense' of type 'tensor<4x128x80xf32>', expected 'tensor<4x80x128xf32>' (heads, dv, dk)}}
  %0 = ss.init %d eps 0.0 : tensor<4x128x80xf32> -> !S
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%d: tensor<4x80x128xf32>) {
  // expected-error @+1 {{has eps 1, expected 0 <= eps < 1}}
  %0 = ss.init %d eps 1.0 : tensor<4x80x128xf32> -> !S
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  // expected-error @+1 {{has eps -0.5, expected 0 <= eps < 1}}
  %0 = ss.consolidate %s eps -0.5 : !S
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !D) {
  // expected-error @+1 {{has a dense state, expected form = factored}}
  %0 = ss.consolidate %s eps 0.5 : !D
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  // expected-error @+1 {{has 'dense' of type 'tensor<4x80x128xf32>', expected 'tensor<4x128x80xf32>' (heads, dk, dv)}}
  %0 = ss.densify %s : !S -> tensor<4x80x128xf32>
  return
}

// -----

func.func @f(%b: !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>) {
  // expected-error @+1 {{unknown side 'top', expected left or right}}
  %0 = ss.orthogonalize_side %b side top : !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
  return
}
