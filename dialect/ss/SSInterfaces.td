//===- SSInterfaces.td - What fusion asks an operation ------*- tablegen -*-===//
#ifndef SINKSTATE_SS_INTERFACES_TD
#define SINKSTATE_SS_INTERFACES_TD

include "SSDialect.td"

def SS_StateOpInterface : OpInterface<"SSStateOpInterface"> {
  let cppNamespace = "::sinkstate::ss";
  let description = [{
    What an operation does with the parts of a state in memory: its component
    **rows** (of a dense state: `H`) and its **buffer** (keys, `u`, log-decays).
    Fusion decides by these answers and never by the names of operations.

    The defaults describe an operation that works on tensors or factor blocks
    alone.
  }];
  let methods = [
    InterfaceMethod<"Reads component rows, or the dense matrix.",
      "bool", "readsRows", (ins), "", "return false;">,
    InterfaceMethod<"Writes component rows, or the dense matrix.",
      "bool", "writesRows", (ins), "", "return false;">,
    InterfaceMethod<"Reads buffered pairs or log-decays.",
      "bool", "readsBuffer", (ins), "", "return false;">,
    InterfaceMethod<"Writes buffered pairs or log-decays, or empties the buffer.",
      "bool", "writesBuffer", (ins), "", "return false;">,
    InterfaceMethod<
      "How often the operation, on its own, moves all rows of the state: one per read and one per write.",
      "unsigned", "rowPasses", (ins), "", [{
        return unsigned($_op.readsRows()) + unsigned($_op.writesRows());
      }]>,
    InterfaceMethod<
      "The axes, of StateAxis, along which the work is independent: programs along such an axis need not talk to each other.",
      "::sinkstate::ss::StateAxis", "parallelAxes", (ins), "",
      "return ::sinkstate::ss::StateAxis::heads;">,
  ];
}

#endif // SINKSTATE_SS_INTERFACES_TD
