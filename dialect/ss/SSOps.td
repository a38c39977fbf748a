//===- SSOps.td - All operations of ss ----------------------*- tablegen -*-===//
#ifndef SINKSTATE_SS_OPS_TD
#define SINKSTATE_SS_OPS_TD

include "SSGraphOps.td"
include "SSDecodeOps.td"
include "SSCompactOps.td"

#endif // SINKSTATE_SS_OPS_TD
