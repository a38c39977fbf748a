//===- SSKOps.td - all operations of the kernel dialect ---------*- tablegen -*-===//
#ifndef SINKSTATE_DIALECT_SSK_SSKOPS_TD
#define SINKSTATE_DIALECT_SSK_SSKOPS_TD

include "dialect/ssk/SSKKernelOps.td"
include "dialect/ssk/SSKMemoryOps.td"
include "dialect/ssk/SSKComputeOps.td"

#endif // SINKSTATE_DIALECT_SSK_SSKOPS_TD
