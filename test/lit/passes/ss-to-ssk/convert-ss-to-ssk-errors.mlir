// RUN: ss-opt --convert-ss-to-ssk %s -split-input-file -verify-diagnostics

// expected-error @below {{has a role but its first argument is not a state}}
func.func @no_state(%x: tensor<2xf32>) attributes {ss.role = "decode"} {
  return
}

// -----

// expected-error @below {{has no fused region to make a kernel from}}
func.func @empty(%state: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) attributes {ss.role = "densify"} {
  return
}

// -----

func.func @unfused(%state: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) -> tensor<2x128x128xf32> attributes {ss.role = "densify"} {
  // expected-error @below {{is not part of the one fused region that a kernel is made from; run ss-fuse-decode and ss-fuse-compaction first}}
  %h = ss.densify %state : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32> -> tensor<2x128x128xf32>
  return %h : tensor<2x128x128xf32>
}

// -----

// expected-error @below {{role 'compact' of a dense layer has no kernel; expected decode}}
func.func @dense(%state: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = dense, storage = f32>) attributes {ss.role = "compact"} {
  return
}

// -----

func.func @no_decay(%state: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, %q: tensor<2x128xf32>) -> tensor<2x128xf32> attributes {ss.role = "decode"} {
  // expected-error @below {{has no ss.decay; every decode step decays}}
  %r = ss.fused "decode"(%state, %q) : (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32>) -> (tensor<2x128xf32>) {
  ^bb0(%s: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, %query: tensor<2x128xf32>):
    %y = ss.readout %s, %query : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>, tensor<2x128xf32> -> tensor<2x128xf32>
    ss.yield %y : tensor<2x128xf32>
  }
  return %r : tensor<2x128xf32>
}

// -----

func.func @foreign(%state: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) -> !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32> attributes {ss.role = "compact"} {
  %r = ss.fused "compact"(%state) : (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) -> (!ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>) {
  ^bb0(%s: !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>):
    // expected-error @below {{has no lowering inside a compaction}}
    %c = ss.consolidate %s eps 0.03 : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
    ss.yield %c : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
  }
  return %r : !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 96, storage = f32>
}

// -----

!S = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>
!A = !ss.factors<heads = 2, rows = 8, dv = 128, dk = 128>
!F = !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>
func.func @one_side(%state: !S) -> !S attributes {ss.role = "compact"} {
  %r = ss.fused "compact"(%state) : (!S) -> (!S) {
  ^bb0(%s: !S):
    %active, %frozen = ss.split %s : !S -> !A, !S
    %block = ss.concat %active, %frozen : !A, !S -> !F
    %right = ss.orthogonalize_side %block side right : !F
    // expected-error @below {{takes a block with one orthonormal side, expected ss.orthogonalize_side of the other one before}}
    %merged = ss.merge %right, %frozen : !F, !S
    ss.yield %merged : !S
  }
  return %r : !S
}

// -----

!S = !ss.state<gdn, heads = 2, key_heads = 2, dv = 128, dk = 128, form = factored, active = 8, buffer = 8, rank = 144, storage = f32>
!A = !ss.factors<heads = 2, rows = 8, dv = 128, dk = 128>
!F = !ss.factors<heads = 2, rows = 16, dv = 128, dk = 128>
func.func @same_side(%state: !S) -> !S attributes {ss.role = "compact"} {
  %r = ss.fused "compact"(%state) : (!S) -> (!S) {
  ^bb0(%s: !S):
    %active, %frozen = ss.split %s : !S -> !A, !S
    %block = ss.concat %active, %frozen : !A, !S -> !F
    %right = ss.orthogonalize_side %block side right : !F
    // expected-error @below {{comes after one of the same side, expected each side once between ss.concat and ss.merge}}
    %again = ss.orthogonalize_side %right side right : !F
    %merged = ss.merge %right, %frozen : !F, !S
    ss.yield %merged : !S
  }
  return %r : !S
}
