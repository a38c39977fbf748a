//===- MappedRange.cpp - Device memory that grows in place ----------------===//

#include "cuda/MappedRange.h"

#include "capi/Failure.h"

#include <algorithm>
#include <utility>

namespace sinkstate::runtime::cuda {
namespace {

CUmemAllocationProp propertiesOf(const Context &context) {
  CUmemAllocationProp properties = {};
  properties.type = kMemAllocationPinned;
  properties.location = {kMemLocationDevice, context.ordinal()};
  return properties;
}

} // namespace

MappedRange::MappedRange(std::shared_ptr<const Context> owner, size_t bytes)
    : context(std::move(owner)) {
  unit = size_t(context->mappingUnit());
  if (unit > 0) {
    reserved = rounded(bytes);
    const IgnoredCaptures ignored(*context);
    SS_CUDA(context->driver(),
            cuMemAddressReserve(&begin, reserved, 0, 0, 0));
    return;
  }
  whole = DeviceMemory(context, bytes);
  begin = whole.address();
  reserved = mapped = bytes;
}

MappedRange &MappedRange::operator=(MappedRange &&other) noexcept {
  std::swap(context, other.context);
  std::swap(begin, other.begin);
  std::swap(reserved, other.reserved);
  std::swap(mapped, other.mapped);
  std::swap(unit, other.unit);
  std::swap(pieces, other.pieces);
  std::swap(whole, other.whole);
  return *this;
}

MappedRange::~MappedRange() {
  if (!begin || unit == 0)
    return;
  try {
    const Release release(*context);
    while (!pieces.empty())
      unmapLast(release);
    SS_RELEASE(cuMemAddressFree(begin, reserved));
  } catch (const Failure &) {
    // The context is gone, and its memory with it.
  }
}

size_t MappedRange::rounded(size_t bytes) const {
  return (bytes + unit - 1) / unit * unit;
}

size_t MappedRange::additionFor(size_t bytes) const {
  if (unit == 0 || bytes <= mapped)
    return 0;
  return std::min(rounded(bytes), reserved) - mapped;
}

bool MappedRange::growTo(size_t bytes) {
  const IgnoredCaptures ignored(*context);
  const size_t before = mapped;
  // In pieces, since memory is given back by whole pieces.
  constexpr size_t kPieceUnits = 8;
  for (size_t more = additionFor(bytes); more > 0;) {
    const size_t piece = std::min(more, kPieceUnits * unit);
    if (!mapPiece(piece)) {
      shrinkTo(before);
      return false;
    }
    more -= piece;
  }
  return bytes <= reserved;
}

bool MappedRange::mapPiece(size_t bytes) {
  const Driver &driver = context->driver();
  const Driver::Functions &call = driver.functions();
  const CUmemAllocationProp properties = propertiesOf(*context);
  pieces.reserve(pieces.size() + 1);
  Piece piece = {0, bytes};
  const CUresult created = call.cuMemCreate(&piece.handle, bytes, &properties, 0);
  if (created == kErrorOutOfMemory)
    return false;
  driver.check(created, "cuMemCreate(&piece.handle, bytes, &properties, 0)",
               __FILE__, __LINE__);
  const CUresult result =
      call.cuMemMap(begin + mapped, bytes, 0, piece.handle, 0);
  if (result != kSuccess) {
    (void)call.cuMemRelease(piece.handle);
    driver.check(result, "cuMemMap(begin + mapped, bytes, 0, piece.handle, 0)",
                 __FILE__, __LINE__);
  }
  pieces.push_back(piece);
  mapped += bytes;
  const CUmemAccessDesc access = {properties.location, kMemAccessReadWrite};
  const CUresult allowed =
      call.cuMemSetAccess(begin + mapped - bytes, bytes, &access, 1);
  if (allowed != kSuccess) {
    unmapLast(Release(*context));
    driver.check(allowed, "cuMemSetAccess(begin + mapped - bytes, ...)",
                 __FILE__, __LINE__);
  }
  return true;
}

void MappedRange::unmapLast(const Release &release) {
  const Piece piece = pieces.back();
  pieces.pop_back();
  mapped -= piece.bytes;
  SS_RELEASE(cuMemUnmap(begin + mapped, piece.bytes));
  SS_RELEASE(cuMemRelease(piece.handle));
}

size_t MappedRange::mappedAfterShrinkTo(size_t bytes) const {
  size_t left = mapped;
  for (auto piece = pieces.rbegin();
       piece != pieces.rend() && left - piece->bytes >= bytes; ++piece)
    left -= piece->bytes;
  return left;
}

void MappedRange::shrinkTo(size_t bytes) {
  const size_t left = mappedAfterShrinkTo(bytes);
  if (mapped == left)
    return;
  const Release release(*context);
  while (mapped > left)
    unmapLast(release);
}

} // namespace sinkstate::runtime::cuda
