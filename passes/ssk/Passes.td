//===- Passes.td - passes over kernels --------------------------*- tablegen -*-===//
#ifndef SINKSTATE_PASSES_SSK_PASSES_TD
#define SINKSTATE_PASSES_SSK_PASSES_TD

include "mlir/Pass/PassBase.td"

def SSKPreparePass : Pass<"ssk-prepare", "::sinkstate::ssk::KernelOp"> {
  let summary = "makes a kernel ready for the printers";
  let description = [{
    The last pass over a kernel, and the only one whose result the printers
    take. It

    * sets `vector` on loads and stores: the widest access, up to 16 bytes, that
      the tile's layout over the lanes and the divisibility of offset, stride and
      limit allow;
    * inserts `ssk.sync` before an access that conflicts with an earlier one of
      other lanes to the same memory since the last sync: a read after a write, a
      write after a read or after a write. Loops count as running twice, so that
      an access in one iteration is separated from the next. Two accesses to
      different arguments or different scratch never conflict, nor do writes of
      single elements, which are all made by lane 0;
    * gives `ssk.parts` the scratch through which its warps add up what they have;
    * sets `pitch` on scratch that is a factor of `ssk.matmul`, or an argument of
      a routine beside one that is, and whose rows would all begin in the same
      bank of shared memory; on none where a block has no room for it;
    * gives scratch that is never needed at the same time the same `slot`, and
      lowers `programs_per_block` by halves until the scratch of a block fits
      `max-shared-bytes`, or to 1;
    * gives every use of a `ssk.splat` its own one: a tile that an accumulation
      starts from is then free to be overwritten;
    * in compactions, sets `ssk.unroll = 1` on loops with a step above 1 that run
      an unknown number of times: they have been unrolled as far as it helps.

    Assumes: pointers are aligned to 16 bytes, arguments with `ssk.divisible_by = n`
    are multiples of n (docs/interfaces.md, section 2).

    ```mlir
    // before
    %t = ssk.load %x[%p128] : !ssk.global<f32> -> !ssk.tile<128xf32, lanes = 0>
    ssk.store %t, %s[%c0] : !ssk.tile<128xf32, lanes = 0>, !ssk.shared<128xf32>
    %y = ssk.read %s[%c5] : !ssk.shared<128xf32>
    // after
    %t = ssk.load %x[%p128] {vector = 4 : i64} : ...
    ssk.store %t, %s[%c0] {vector = 4 : i64} : ...
    ssk.sync
    %y = ssk.read %s[%c5] : !ssk.shared<128xf32>
    ```
  }];
  let options = [
    Option<"maxSharedBytes", "max-shared-bytes", "int64_t", /*default=*/"49152",
           "shared memory of a block that all its programs have to fit; 48 KB need no "
           "request at the launch">
  ];
  let statistics = [
    Statistic<"wideAccesses", "wide-accesses", "loads and stores of more than one element a lane">,
    Statistic<"narrowAccesses", "narrow-accesses", "loads and stores that stay at one element">,
    Statistic<"syncs", "syncs", "syncs inserted">,
    Statistic<"scratchBytes", "scratch-bytes", "bytes of scratch of the program that takes most">
  ];
}

#endif // SINKSTATE_PASSES_SSK_PASSES_TD
