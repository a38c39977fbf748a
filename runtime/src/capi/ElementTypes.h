//===- ElementTypes.h - Types of a caller's arrays --------------*- C++ -*-===//
#ifndef SINKSTATE_CAPI_ELEMENTTYPES_H
#define SINKSTATE_CAPI_ELEMENTTYPES_H

#include "capi/Failure.h"
#include "numeric/Elements.h"

#include "sinkstate/sinkstate.h"

namespace sinkstate::runtime {

/// The type that an ss_element_type names. Throws SS_INVALID_ARGUMENT, with
/// `name` for the field, where it names none.
inline numeric::ElementType checkedElementType(const char *name, int32_t type) {
  switch (type) {
  case SS_ELEMENT_F32:
    return numeric::ElementType::F32;
  case SS_ELEMENT_F16:
    return numeric::ElementType::F16;
  case SS_ELEMENT_BF16:
    return numeric::ElementType::BF16;
  }
  fail(SS_INVALID_ARGUMENT, name, " is ", type,
       ", expected SS_ELEMENT_F32 (0), SS_ELEMENT_F16 (1) or "
       "SS_ELEMENT_BF16 (2)");
}

} // namespace sinkstate::runtime

#endif
