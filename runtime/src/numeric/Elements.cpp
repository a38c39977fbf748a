//===- Elements.cpp - Arrays of floats of several types -------------------===//

#include "numeric/Elements.h"

#include <algorithm>

namespace sinkstate::numeric {

void loadElements(ElementType type, float *to, const void *from,
                  int64_t count) {
  withFormat(type, [&](auto format) {
    using Format = decltype(format);
    const auto *elements = static_cast<const typename Format::Bits *>(from);
    std::transform(elements, elements + count, to, Format::widen);
  });
}

void storeElements(ElementType type, void *to, const float *from,
                   int64_t count) {
  withFormat(type, [&](auto format) {
    using Format = decltype(format);
    std::transform(from, from + count,
                   static_cast<typename Format::Bits *>(to), Format::narrow);
  });
}

} // namespace sinkstate::numeric
