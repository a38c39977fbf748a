// Everything that a graph can get wrong.
// RUN: ss-opt %s --split-input-file --verify-diagnostics

ss.model @model {
  // expected-error @+1 {{@layer0: 'heads' is 0, expected 1 to 65536}}
  ss.layer @layer0 type gdn index 0 heads 0 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: 'heads' is -2, expected 1 to 65536}}
  ss.layer @layer0 type gdn index 0 heads -2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: 'key_heads' is 0, expected 1 to 65536}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 0 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: 'heads' is 4, expected a multiple of 'key_heads', 3}}
  ss.layer @layer0 type gdn index 0 heads 4 key_heads 3 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: 'dv' is 0, expected 1 to 65536}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 0 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: 'dk' is 70000, expected 1 to 65536}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 70000 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{has index -1, expected 0 to 2147483647}}
  ss.layer @layer0 type gdn index -1 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: 'active' is 0, expected at least 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 0 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: 'buffer' is 0, expected at least 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 0 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: 'draft' is -1, expected 0 or more}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored {draft = -1}
}

// -----

ss.model @model {
  // expected-error @+1 {{@layer0: active + buffer + draft is 8 + 48 + 9, expected at most 64}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 48 storage f32 form factored {draft = 9}
}

// -----

ss.model @model {
  // expected-error @+1 {{unknown layer type 'rwkv', expected mamba2, gdn or kda}}
  ss.layer @layer0 type rwkv index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{unknown storage 'f64', expected f32, f16, bf16 or fp8}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f64 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{unknown form 'sparse', expected factored, dense, deferred or sink}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form sparse
}

// -----

ss.model @model {
  // expected-error @+1 {{unknown gate 'relu', expected softplus, softplus_channel or bounded_channel}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<relu> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{unknown norm 'rms', expected none, add or max}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<rms, 1.0> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{unknown policy 'absolute', expected relative, fixed, energy or budget}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<absolute, 1.0> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{expected a number}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, "a"> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{policy 'relative' has eps 1, expected 0 <= eps < 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 1.0> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{policy 'relative' has eps -0.1, expected 0 <= eps < 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, -0.1> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{policy 'relative' has eps nan, expected 0 <= eps < 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 0x7FF8000000000000 : f64> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{policy 'energy' has share 0, expected 0 < share <= 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<energy, 0.0> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{policy 'energy' has share 1.5, expected 0 < share <= 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<energy, 1.5> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{policy 'fixed' has rank 0, expected a whole number of at least 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<fixed, 0> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{policy 'fixed' has rank 2.5, expected a whole number of at least 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<fixed, 2.5> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{policy 'budget' has bytes -1, expected a whole number of at least 1}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<budget, -1> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{has a fixed rank of 16, expected at most min(dv, dk), 8}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 8 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<fixed, 16> active 16 buffer 16 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{has a fixed rank of 16 with active 8 and buffer 16, expected both to be the rank}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<fixed, 16> active 8 buffer 16 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{has a budget of 1000 bytes per state, expected at least 1028, one component}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<budget, 1000> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{gate 'softplus' has a bound of -5, but only 'bounded_channel' takes one}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus, -5.0> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{gate 'bounded_channel' has a bound of 5, expected a finite one below 0, such as -5.0}}
  ss.layer @layer0 type kda index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<bounded_channel, 5.0> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{gate 'bounded_channel' has a bound of 0, expected a finite one below 0, such as -5.0}}
  ss.layer @layer0 type kda index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<bounded_channel> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{norm 'none' has an epsilon of 1, but takes none}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<none, 1.0> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{norm 'add' has an epsilon of 0, expected a finite one above 0, such as 1.0e-6}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 0.0> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{norm 'max' has an epsilon of 0, expected a finite one above 0, such as 1.0e-6}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<max> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{has gate 'softplus_channel', but layer type 'gdn' decays by head; expected 'softplus'}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus_channel> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{has gate 'softplus', but layer type 'kda' decays by key channel; expected 'softplus_channel' or 'bounded_channel'}}
  ss.layer @layer0 type kda index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{has beta_scale 3, expected 0 < beta_scale <= 2}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored {beta_scale = 3.0 : f64}
}

// -----

ss.model @model {
  // expected-error @+1 {{has beta_scale 2, but layer type 'mamba2' has no beta}}
  ss.layer @layer0 type mamba2 index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored {beta_scale = 2.0 : f64}
}

// -----

ss.model @model {
  // expected-error @+1 {{has query_scale 0, expected a finite number other than 0}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.0 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{names a kernel for role 'prefill', expected 'decode', 'compact', 'densify' or 'init'}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored {kernels = {prefill = @f}}
}

// -----

ss.model @model {
  // expected-error @+1 {{has kernel 1 : i64 for role 'decode', expected a symbol}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored {kernels = {decode = 1}}
}

// -----

ss.model @model {
  // expected-note @+1 {{see existing symbol definition here}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{redefinition of symbol named 'layer0'}}
  ss.layer @layer0 type gdn index 1 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has index 0 of layer @layer0, expected one of its own}}
  ss.layer @layer1 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{stands in a model, expected only ss.layer and ss.schedule there}}
  func.func private @f()
}

// -----

// expected-error @+1 {{'ss.layer' op expects parent op 'ss.model'}}
ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has phase 8 for @layer0, expected 0 to 7}}
  ss.schedule period 8 phases [@layer0 = 8]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has phase -1 for @layer0, expected 0 to 7}}
  ss.schedule period 8 phases [@layer0 = -1]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{names @layer9, expected a layer of model @model}}
  ss.schedule period 8 phases [@layer9 = 0]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{names @layer0 twice}}
  ss.schedule period 8 phases [@layer0 = 0, @layer0 = 1]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form dense
  // expected-error @+1 {{names @layer0, a dense layer, which is never compacted}}
  ss.schedule period 8 phases [@layer0 = 0]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form deferred
  // expected-error @+1 {{names @layer0, a deferred layer, which is never compacted}}
  ss.schedule period 8 phases [@layer0 = 0]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has no phase for @layer0, expected one for every factored layer}}
  ss.schedule period 8 phases []
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has period 12, expected a multiple of the buffer of @layer0, 8}}
  ss.schedule period 12 phases [@layer0 = 0]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has period 0, expected at least 1}}
  ss.schedule period 0 phases [@layer0 = 0]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  ss.schedule period 8 phases [@layer0 = 0]
  // expected-error @+1 {{is the second schedule of model @model, expected one}}
  ss.schedule period 8 phases [@layer0 = 0]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has 2 phases for 1 layers}}
  "ss.schedule"() <{period = 8 : i64, layers = [@layer0], phases = array<i64: 0, 1>}> : () -> ()
}

// -----

// expected-error @+1 {{'ss.role' is "prefill", expected "decode", "compact", "densify" or "init"}}
func.func private @f() attributes {ss.role = "prefill"}

// -----

// expected-error @+1 {{'ss.layer' is "layer0", expected the symbol of an ss.layer}}
func.func private @f() attributes {ss.layer = "layer0"}

// -----

// expected-error @+1 {{unknown attribute 'ss.phase', expected 'ss.layer' or 'ss.role'}}
func.func private @f() attributes {ss.phase = 1}

// -----

ss.model @model {
  // expected-error @+1 {{unknown core 'lu', expected svd or qr}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 core lu storage f32 form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{unknown rounding 'up', expected nearest or stochastic}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f16 rounding up form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{'rounding' is 'stochastic' with storage 'f32', which rounds nothing; expected f16, bf16 or fp8}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 rounding stochastic form factored
}

// -----

ss.model @model {
  // expected-error @+1 {{a dense state has storage 'fp8', expected f32, f16 or bf16: only rows, which have unit length, are stored in 8 bits}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage fp8 form dense
}

// -----

ss.model @model {
  // expected-error @+1 {{has form 'sink' with policy 'relative', expected 'fixed'}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form sink
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has @layer9 in 'before', expected a layer with a phase}}
  ss.schedule period 8 phases [@layer0 = 0] before [@layer9]
}

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.125 policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
  // expected-error @+1 {{has @layer0 in 'before' twice}}
  ss.schedule period 8 phases [@layer0 = 0] before [@layer0, @layer0]
}
