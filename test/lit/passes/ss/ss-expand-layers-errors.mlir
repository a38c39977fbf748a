// RUN: ss-opt %s --split-input-file --verify-diagnostics --ss-expand-layers

ss.model @model {
  // expected-error @+1 {{@layer0 expands to function @layer0_compact, but the module already has a symbol of that name; rename it or expand only once}}
  ss.layer @layer0 type gdn index 0 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<max, 1.0e-12> query_scale 0.125
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored
}
func.func private @layer0_compact()

// -----

ss.model @first {}
// expected-error @+1 {{@second is the second model of the module, expected one; compile models one by one}}
ss.model @second {}
