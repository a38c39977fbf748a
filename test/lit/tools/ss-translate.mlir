// RUN: ss-translate --help | FileCheck %s --check-prefix=HELP
// RUN: rm -rf %t && mkdir %t
// RUN: ss-translate --ssk-to-cuda-files --cuda-folder=%t %s | FileCheck %s --check-prefix=LINES
// RUN: FileCheck %s --check-prefix=FILE < %t/first.cu
// RUN: not ss-translate --ssk-to-cuda-files --cuda-folder=%t/none %s 2>&1 | FileCheck %s --check-prefix=NO-FOLDER
// RUN: not ss-translate --ssk-to-cuda --cuda-kernel=third %s 2>&1 | FileCheck %s --check-prefix=NO-KERNEL
// RUN: ss-translate --ssk-to-cuda --cuda-line-directives %s | FileCheck %s --check-prefix=LINE

// HELP: --ssk-to-cuda
// HELP: EXAMPLES:
// HELP: ss-translate --ssk-to-cuda kernels.mlir -o kernels.cu
// HELP: READING A PRINTED KERNEL:

// LINES: {"args":["x"],"dynamic_shared":0,"file":"first.cu","loops":false,"name":"first","parts":1,"programs_per_block":2,"role":"decode","shared_bytes":0,"warps":1}
// LINES: {"args":["x"],"dynamic_shared":65536,"file":"second.cu","loops":false,"name":"second","parts":1,"programs_per_block":1,"role":"","shared_bytes":65536,"warps":1}

// FILE: #include "ss/base.cuh"
// FILE: first(
// FILE-NOT: second(

// NO-FOLDER: error: cannot be written to '{{.*}}none/first.cu' (No such file or directory), expected --cuda-folder to name a folder that exists
// NO-KERNEL: error: has no kernel 'third', named by --cuda-kernel

// LINE: #line [[#@LINE + 5]] "{{.*}}ss-translate.mlir"
// LINE-NEXT:   if (lane == 0)
ssk.kernel @first(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 2 : i64, role = "decode"} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  ssk.write %zero, %x[%c0] : !ssk.global<f32>
  ssk.return
}

ssk.kernel @second(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %s = ssk.alloc : !ssk.shared<128x128xf32>
  ssk.fill %s, %zero : !ssk.shared<128x128xf32>
  ssk.return
}
