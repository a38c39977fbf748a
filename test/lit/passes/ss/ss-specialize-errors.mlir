// RUN: ss-opt %s --split-input-file --verify-diagnostics --ss-specialize

ss.model @model {
  // expected-error @+1 {{@layer0 has no functions; run ss-expand-layers first}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}

// -----

ss.model @model {}
// expected-error @+1 {{@f is made for @layer7, which model @model does not have}}
func.func @f() attributes {ss.layer = @layer7, ss.role = "decode"} { return }

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}
// expected-error @+1 {{@f is made for @layer0 but has no 'ss.role'}}
func.func @f() attributes {ss.layer = @layer0} { return }

// -----

ss.model @model {
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}
func.func @f() attributes {ss.layer = @layer0, ss.role = "decode"} { return }
// expected-error @+1 {{@g is the second function of role "decode" of layer @layer0}}
func.func @g() attributes {ss.layer = @layer0, ss.role = "decode"} { return }
