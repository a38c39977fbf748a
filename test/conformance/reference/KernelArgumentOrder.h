//===- KernelArgumentOrder.h - Arguments of reference kernels ---*- C++ -*-===//
//
// The arguments of each kind of kernel in the order the reference kernels take
// them. The manifest and the kernels are both made from these lists.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_KERNELARGUMENTORDER_H
#define SINKSTATE_REFERENCE_KERNELARGUMENTORDER_H

#include "ModelSpec.h"

#include <string>
#include <vector>

namespace sinkstate::reference {

struct NamedArgument {
  std::string name, type;
};

inline std::vector<NamedArgument> stateArguments() {
  return {{"rows", "f32*"},     {"weights", "f32*"},  {"row_base", "i64*"},
          {"rank", "i32*"},     {"status", "i32*"},   {"count", "i32*"},
          {"buffer_k", "f32*"}, {"buffer_u", "f32*"}, {"buffer_g", "f32*"}};
}

inline std::vector<NamedArgument> decodeArguments(const LayerSpec &layer) {
  std::vector<NamedArgument> list;
  if (layer.denseForm)
    list.push_back({"dense", "f32*"});
  else
    list = stateArguments();
  list.push_back({"slots", "i32*"});
  for (const char *name : {"q", "k", "v", "gate", "beta", "y"}) {
    if (std::string(name) == "beta" && !layer.hasBeta())
      continue;
    list.push_back({name, "f32*"});
    list.push_back({std::string(name) + "_stride", "i64"});
  }
  list.push_back({"a_log", "f32*"});
  list.push_back({"dt_bias", "f32*"});
  if (!layer.denseForm) {
    list.push_back({"order", "i32*"});
    list.push_back({"ordered", "i32"});
  }
  return list;
}

inline std::vector<NamedArgument> compactArguments() {
  std::vector<NamedArgument> list = stateArguments();
  list.push_back({"work", "i32*"});
  list.push_back({"work_count", "i32*"});
  list.push_back({"count_ahead", "i32"});
  list.push_back({"policy_value", "f32"});
  list.push_back({"max_rank", "i32"});
  list.push_back({"row_capacity", "i32*"});
  return list;
}

inline std::vector<NamedArgument> densifyArguments() {
  std::vector<NamedArgument> list = stateArguments();
  list.push_back({"work", "i32*"});
  list.push_back({"work_count", "i32*"});
  list.push_back({"count_ahead", "i32"});
  list.push_back({"out", "f32*"});
  list.push_back({"out_base", "i64*"});
  return list;
}

inline std::vector<NamedArgument> initArguments() {
  return {{"factors", "f32*"},     {"weights", "f32*"},
          {"row_base", "i64*"},    {"rank", "i32*"},
          {"status", "i32*"},      {"work", "i32*"},
          {"work_count", "i32*"},  {"matrices", "f32*"},
          {"matrix_base", "i64*"}, {"policy_value", "f32"},
          {"max_rank", "i32"},     {"seed", "i64"}};
}

} // namespace sinkstate::reference

#endif
