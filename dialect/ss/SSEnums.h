//===- SSEnums.h - Enums of the ss dialect ----------------------*- C++ -*-===//
#ifndef SINKSTATE_DIALECT_SS_SSENUMS_H
#define SINKSTATE_DIALECT_SS_SSENUMS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/BitmaskEnum.h"
#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

#include "dialect/ss/SSEnums.h.inc"

namespace sinkstate::ss {

LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

/// Axes along which the work of a state operation may be independent.
enum class StateAxis : uint32_t {
  none = 0,
  heads = 1,
  channels = 2, ///< key channels, the columns of H
  LLVM_MARK_AS_BITMASK_ENUM(channels)
};

/// True if all of `axes` are among `available`.
inline bool hasAxes(StateAxis available, StateAxis axes) {
  return (available & axes) == axes;
}

/// The keywords of an enum as "a, b or c", for messages.
template <typename Enum> std::string listKeywords() {
  std::string list;
  for (uint32_t value = 0;; ++value) {
    llvm::StringRef word = stringifyEnum(static_cast<Enum>(value));
    if (word.empty())
      return list;
    bool last = stringifyEnum(static_cast<Enum>(value + 1)).empty();
    if (value > 0)
      list += last ? " or " : ", ";
    list += word;
  }
}

} // namespace sinkstate::ss

#endif // SINKSTATE_DIALECT_SS_SSENUMS_H
