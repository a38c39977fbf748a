//===- SSTypes.cpp - Types of ss ------------------------------------------===//

#include "dialect/ss/SS.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace sinkstate::ss;

#define GET_TYPEDEF_CLASSES
#include "dialect/ss/SSTypes.cpp.inc"

void SSDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/ss/SSTypes.cpp.inc"
      >();
}

std::string sinkstate::ss::formatNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

LogicalResult
sinkstate::ss::verifyStateSizes(function_ref<InFlightDiagnostic()> emitError,
                                const StateSizes &sizes) {
  std::pair<StringRef, int64_t> dims[] = {{"heads", sizes.heads},
                                          {"key_heads", sizes.keyHeads},
                                          {"dv", sizes.dv},
                                          {"dk", sizes.dk}};
  for (auto [name, size] : dims)
    if (size < 1 || size > kMaxSize)
      return emitError() << "'" << name << "' is " << size << ", expected 1 to "
                         << kMaxSize;
  if (sizes.heads % sizes.keyHeads != 0)
    return emitError() << "'heads' is " << sizes.heads
                       << ", expected a multiple of 'key_heads', "
                       << sizes.keyHeads;
  if (sizes.draft < 0)
    return emitError() << "'draft' is " << sizes.draft
                       << ", expected 0 or more";
  return success();
}

LogicalResult
sinkstate::ss::verifyBlockSizes(function_ref<InFlightDiagnostic()> emitError,
                                int64_t active, int64_t buffer, int64_t draft) {
  std::pair<StringRef, int64_t> counts[] = {{"active", active},
                                            {"buffer", buffer}};
  for (auto [name, count] : counts)
    if (count < 1)
      return emitError() << "'" << name << "' is " << count
                         << ", expected at least 1";
  if (active > kMaxBlockRows || buffer > kMaxBlockRows ||
      draft > kMaxBlockRows || active + buffer + draft > kMaxBlockRows)
    return emitError() << "active + buffer + draft is " << active << " + "
                       << buffer << " + " << draft << ", expected at most "
                       << kMaxBlockRows;
  return success();
}

LogicalResult StateType::verify(function_ref<InFlightDiagnostic()> emitError,
                                LayerType layerType, int64_t heads,
                                int64_t keyHeads, int64_t dv, int64_t dk,
                                Form form, int64_t active, int64_t buffer,
                                int64_t rank, Storage storage, int64_t draft,
                                Rounding rounding) {
  if (stringifyEnum(layerType).empty() || stringifyEnum(form).empty() ||
      stringifyEnum(storage).empty() || stringifyEnum(rounding).empty())
    return emitError() << "unknown layer type, form, storage or rounding";
  if (rounding == Rounding::stochastic && storage == Storage::f32)
    return emitError() << kNoRoundingOfF32;
  if (failed(verifyStateSizes(emitError, {heads, keyHeads, dv, dk, draft})))
    return failure();
  if (form == Form::dense) {
    if (storage == Storage::fp8)
      return emitError() << kNoDenseFp8;
    if (active == 0 && buffer == 0 && rank == 0 && draft == 0)
      return success();
    return emitError() << "a dense state has no 'active', 'buffer', 'rank' or "
                          "'draft'; leave them out";
  }
  if (form == Form::deferred) {
    if (storage == Storage::fp8)
      return emitError() << kNoDenseFp8;
    if (rounding == Rounding::stochastic)
      return emitError() << kNoRandomDeferred;
    if (active == 0 && rank == 0 && draft == 0 && buffer >= 1 &&
        buffer <= kMaxBlockRows)
      return success();
    return emitError() << "a deferred state has a 'buffer' of 1 to "
                       << kMaxBlockRows
                       << " and no 'active', 'rank' or 'draft'";
  }
  if (failed(verifyBlockSizes(emitError, active, buffer, draft)))
    return failure();
  if (rank < active || rank > kMaxSize)
    return emitError() << "'rank' is " << rank << ", expected 'active', "
                       << active << ", to " << kMaxSize;
  return success();
}

/// Bytes of one element of a stored row.
static int64_t storageBytes(Storage storage) {
  if (storage == Storage::fp8)
    return 1;
  return storage == Storage::f32 ? 4 : 2;
}

int64_t StateType::getComponentBytes() const {
  return (getDk() + getDv()) * storageBytes(getStorage()) + 4;
}

int64_t StateType::getRowBytes() const {
  if (!isFactored())
    return getHeads() * getDv() * getDk() * storageBytes(getStorage());
  return getHeads() * getRank() * getComponentBytes();
}

int64_t StateType::getBufferBytes() const {
  int64_t decays = getInfo().channelDecay ? getDk() : 1;
  return 4 * getBufferRows() *
         (getKeyHeads() * getDk() + getHeads() * (getDv() + decays));
}

LogicalResult FactorsType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t heads, int64_t rows, int64_t dv,
                                  int64_t dk) {
  std::pair<StringRef, int64_t> sizes[] = {
      {"heads", heads}, {"rows", rows}, {"dv", dv}, {"dk", dk}};
  for (auto [name, size] : sizes)
    if (size < 1 || size > kMaxSize)
      return emitError() << "'" << name << "' is " << size << ", expected 1 to "
                         << kMaxSize;
  return success();
}
