// What can be asked wrongly of ss-fuse-decode. Wrong IR is for the verifiers: the pass has no
// errors of its own, and leaves what it cannot fuse outside.
// RUN: not ss-opt /dev/null --pass-pipeline='builtin.module(func.func(ss-fuse-decode{limit=3}))' 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: {{.*}}no such option limit
// OPTION: failed to add `ss-fuse-decode` with options `limit=3`
// RUN: not ss-opt /dev/null --pass-pipeline='builtin.module(ss.model(ss-fuse-decode))' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// ANCHOR: error: Can't add pass 'SSFuseDecode' restricted to 'func.func' on a PassManager intended to run on 'ss.model'

// A role that is none is found before any pass.
// RUN: ss-opt %s --verify-diagnostics --pass-pipeline='builtin.module(func.func(ss-fuse-decode))'
// expected-error @+1 {{'ss.role' is "prefill", expected "decode", "compact", "densify" or "init"}}
func.func private @f() attributes {ss.role = "prefill"}
