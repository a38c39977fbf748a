// Everything that types and operations of a decode step can get wrong, and
// regions of fused ones.
// RUN: ss-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error @+1 {{'heads' is 0, expected 1 to 65536}}
func.func private @f(!ss.state<gdn, heads = 0, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{'heads' is 4, expected a multiple of 'key_heads', 3}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 3, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{'dv' is -1, expected 1 to 65536}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = -1, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{'active' is 0, expected at least 1}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 0, buffer = 8, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{'buffer' is 0, expected at least 1}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 0, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{active + buffer + draft is 8 + 60 + 0, expected at most 64}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 60, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{'draft' is -1, expected 0 or more}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32, draft = -1>)

// -----

// expected-error @+1 {{'rank' is 7, expected 'active', 8, to 65536}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 7, storage = f32>)

// -----

// expected-error @+1 {{a dense state has no 'active', 'buffer', 'rank' or 'draft'; leave them out}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, active = 8, buffer = 8, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{'rows' is 0, expected 1 to 65536}}
func.func private @f(!ss.factors<heads = 4, rows = 0, dv = 80, dk = 128>)

// -----

// expected-error @+2 {{to be one of: mamba2, gdn, kda}}
// expected-error @+1 {{failed to parse SS_StateType parameter 'layer_type'}}
func.func private @f(!ss.state<rwkv, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>)

// -----

// expected-error @+2 {{to be one of: factored, dense, deferred, sink}}
// expected-error @+1 {{failed to parse SS_StateType parameter 'form'}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = sparse, active = 8, buffer = 8, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{a deferred state has a 'buffer' of 1 to 64 and no 'active', 'rank' or 'draft'}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = deferred, storage = f32>)

// -----

// expected-error @+1 {{a deferred state has a 'buffer' of 1 to 64 and no 'active', 'rank' or 'draft'}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = deferred, active = 8, buffer = 8, rank = 96, storage = f32>)

// -----

// expected-error @+1 {{a deferred state is rounded stochastically, expected rounding nearest}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = deferred, buffer = 8, storage = f16, rounding = stochastic>)

// -----

!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
func.func @f(%s: !D) {
  // expected-error @+1 {{has a dense state, expected form = deferred}}
  %0 = ss.fold %s : !D
  return
}

// -----

// expected-error @+2 {{to be one of: f32, f16, bf16, fp8}}
// expected-error @+1 {{failed to parse SS_StateType parameter 'storage'}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f64>)

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{has 'input' of type 'tensor<4xf32>', expected [key_heads, dk]}}
  %0 = ss.normalize %x norm #ss.norm<none> scale 1.0 : tensor<4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{has scale 0, expected a finite number other than 0}}
  %0 = ss.normalize %x norm #ss.norm<none> scale 0.0 : tensor<4x4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{must be tensor of static shape of 32-bit float}}
  %0 = ss.normalize %x norm #ss.norm<none> scale 1.0 : tensor<?x4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%x: tensor<4x4xf64>) {
  // expected-error @+1 {{must be tensor of static shape of 32-bit float}}
  %0 = ss.normalize %x norm #ss.norm<none> scale 1.0 : tensor<4x4xf64>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%x: tensor<4x128xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has 'input' of type 'tensor<4x128xf32>', expected [heads]}}
  %0 = ss.log_decay %x, %a, %x gate <softplus> : (tensor<4x128xf32>, tensor<4xf32>, tensor<4x128xf32>) -> tensor<4x128xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{has 'input' of type 'tensor<4xf32>', expected [heads, dk]}}
  %0 = ss.log_decay %a, %a, %a gate <softplus_channel> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%x: tensor<4xf32>, %a: tensor<3xf32>) {
  // expected-error @+1 {{has 'a_log' of type 'tensor<3xf32>', expected 'tensor<4xf32>' (heads)}}
  %0 = ss.log_decay %x, %a, %x gate <softplus> : (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%x: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{failed to verify that all of {input, dt_bias, result} have same type}}
  %0 = ss.log_decay %x, %x, %b gate <softplus> : (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%b: tensor<4x128xf32>) {
  // expected-error @+1 {{has 'beta' of type 'tensor<4x128xf32>', expected [heads]}}
  %0 = ss.write_weight %b scale 1.0 : tensor<4x128xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%b: tensor<4xf32>) {
  // expected-error @+1 {{has scale 0, expected a finite number other than 0}}
  %0 = ss.write_weight %b scale 0.0 : tensor<4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%b: tensor<4x128xf32>) {
  // expected-error @+1 {{has 'input' of type 'tensor<4x128xf32>', expected [heads]}}
  %0 = ss.time_step %b, %b : tensor<4x128xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S, %g: tensor<4x128xf32>) {
  // expected-error @+1 {{has 'log_decay' of type 'tensor<4x128xf32>', expected 'tensor<4xf32>' (heads)}}
  %0 = ss.decay %s by %g : !S, tensor<4x128xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !C, %g: tensor<4xf32>) {
  // expected-error @+1 {{has 'log_decay' of type 'tensor<4xf32>', expected 'tensor<4x128xf32>' (heads, dk)}}
  %0 = ss.decay %s by %g : !C, tensor<4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S, %k: tensor<4x128xf32>, %v: tensor<4x80xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{has 'key' of type 'tensor<4x128xf32>', expected 'tensor<2x128xf32>' (key_heads, dk)}}
  %0 = ss.append %s, %k, %v weight %w : !S, tensor<4x128xf32>, tensor<4x80xf32>, tensor<4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S, %k: tensor<2x128xf32>, %v: tensor<2x128xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{has 'value' of type 'tensor<2x128xf32>', expected 'tensor<4x80xf32>' (heads, dv)}}
  %0 = ss.append %s, %k, %v weight %w : !S, tensor<2x128xf32>, tensor<2x128xf32>, tensor<4xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S, %k: tensor<2x128xf32>, %v: tensor<4x80xf32>, %w: tensor<2xf32>) {
  // expected-error @+1 {{has 'weight' of type 'tensor<2xf32>', expected 'tensor<4xf32>' (heads)}}
  %0 = ss.append %s, %k, %v weight %w : !S, tensor<2x128xf32>, tensor<4x80xf32>, tensor<2xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S, %q: tensor<4x80xf32>) {
  // expected-error @+1 {{has 'query' of type 'tensor<4x80xf32>', expected 'tensor<2x128xf32>' (key_heads, dk)}}
  %0 = ss.readout %s, %q : !S, tensor<4x80xf32> -> tensor<4x80xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S, %q: tensor<2x128xf32>) {
  // expected-error @+1 {{has 'result' of type 'tensor<2x128xf32>', expected 'tensor<4x80xf32>' (heads, dv)}}
  %0 = ss.readout %s, %q : !S, tensor<2x128xf32> -> tensor<2x128xf32>
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  // expected-error @+1 {{has role 'prefill', expected 'decode', 'compact', 'densify' or 'init'}}
  %0 = ss.fused "prefill"(%s) : (!S) -> tensor<4x128x80xf32> {
  ^bb0(%a: !S):
    %0 = ss.densify %a : !S -> tensor<4x128x80xf32>
    ss.yield %0 : tensor<4x128x80xf32>
  }
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  // expected-error @+1 {{has body arguments of types ('!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>', 'index'), expected those of the operands}}
  %0 = ss.fused "densify"(%s) : (!S) -> tensor<4x128x80xf32> {
  ^bb0(%a: !S, %b: index):
    %0 = ss.densify %a : !S -> tensor<4x128x80xf32>
    ss.yield %0 : tensor<4x128x80xf32>
  }
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  %0 = ss.fused "densify"(%s) : (!S) -> tensor<4x128x80xf32> {
  ^bb0(%a: !S):
    // expected-error @+1 {{gives types (), expected those of the results, ('tensor<4x128x80xf32>')}}
    ss.yield
  }
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  // expected-error @+1 {{has a body that does not end with ss.yield}}
  %0 = ss.fused "densify"(%s) : (!S) -> tensor<4x128x80xf32> {
  ^bb0(%a: !S):
    "test.end"() : () -> ()
  }
  return
}

// -----

!S = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!D = !ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = f32>
!C = !ss.state<kda, heads = 4, key_heads = 4, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
!A = !ss.factors<heads = 4, rows = 8, dv = 80, dk = 128>
!F = !ss.factors<heads = 4, rows = 16, dv = 80, dk = 128>
func.func @f(%s: !S) {
  // expected-note @+1 {{required by region isolation constraints}}
  %0 = ss.fused "densify"(%s) : (!S) -> tensor<4x128x80xf32> {
  ^bb0(%a: !S):
    // expected-error @+1 {{using value defined outside the region}}
    %1 = ss.densify %s : !S -> tensor<4x128x80xf32>
    ss.yield %1 : tensor<4x128x80xf32>
  }
  return
}

// -----

// expected-error @+1 {{a dense state has storage 'fp8', expected f32, f16 or bf16}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = dense, storage = fp8>)

// -----

// expected-error @+1 {{'rounding' is 'stochastic' with storage 'f32', which rounds nothing}}
func.func private @f(!ss.state<gdn, heads = 4, key_heads = 2, dv = 80, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32, rounding = stochastic>)
