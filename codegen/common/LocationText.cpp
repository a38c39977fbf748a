//===- LocationText.cpp - Names and notes in locations --------------------===//

#include "codegen/common/LocationText.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sinkstate::codegen;

static bool isIdentifier(StringRef text) {
  return !text.empty() && !llvm::isDigit(text[0]) &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// The first NameLoc of the wanted kind, from the outside in.
static StringRef findName(Location loc, bool identifier) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    StringRef text = name.getName().getValue();
    return isIdentifier(text) == identifier ? text : findName(name.getChildLoc(), identifier);
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef text = findName(part, identifier); !text.empty())
        return text;
  return {};
}

StringRef sinkstate::codegen::getNameHint(Location loc) { return findName(loc, true); }

StringRef sinkstate::codegen::getNote(Location loc) { return findName(loc, false); }

FileLineColLoc sinkstate::codegen::getFilePlace(Location loc) {
  if (auto place = dyn_cast<FileLineColLoc>(loc))
    return place;
  if (auto name = dyn_cast<NameLoc>(loc))
    return getFilePlace(name.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (FileLineColLoc place = getFilePlace(part))
        return place;
  return {};
}
