//===- ConfigNode.h - Checked access to a config.json -----------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_IMPORT_CONFIGNODE_H
#define SINKSTATE_TOOLS_SS_IMPORT_CONFIGNODE_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace sinkstate {

/// An object of a config.json. A read that fails has told why, with the full
/// name of the key.
class ConfigNode {
public:
  ConfigNode(const llvm::json::Object &object, std::string prefix,
             mlir::Location loc)
      : object(&object), prefix(std::move(prefix)), loc(loc) {}

  bool has(llvm::StringRef key) const { return object->get(key) != nullptr; }

  /// A whole number from 1 to kMaxSize.
  mlir::LogicalResult readSize(llvm::StringRef key, int64_t &value) const;
  mlir::LogicalResult readNumber(llvm::StringRef key, double &value) const;
  mlir::LogicalResult readBool(llvm::StringRef key, bool &value) const;
  mlir::LogicalResult readString(llvm::StringRef key, std::string &value) const;
  mlir::LogicalResult
  readStrings(llvm::StringRef key,
              llvm::SmallVectorImpl<std::string> &values) const;
  mlir::LogicalResult
  readIntegers(llvm::StringRef key,
               llvm::SmallVectorImpl<int64_t> &values) const;
  std::optional<ConfigNode> readObject(llvm::StringRef key) const;
  /// The object of a key that may be missing or no object.
  std::optional<ConfigNode> findObject(llvm::StringRef key) const;

  /// Fails if `whole` is no multiple of `part`, both values of keys.
  mlir::LogicalResult checkMultiple(llvm::StringRef wholeKey, int64_t whole,
                                    llvm::StringRef partKey,
                                    int64_t part) const;

  /// Starts an error "'prefix.key' ".
  mlir::InFlightDiagnostic error(const llvm::Twine &key) const;
  mlir::Location getLoc() const { return loc; }

private:
  /// The value, or null after an error.
  const llvm::json::Value *find(llvm::StringRef key,
                                llvm::StringRef expected) const;
  mlir::LogicalResult reject(const llvm::Twine &key,
                             const llvm::json::Value &found,
                             const llvm::Twine &expected) const;

  const llvm::json::Object *object;
  std::string prefix;
  mlir::Location loc;
};

} // namespace sinkstate

#endif // SINKSTATE_TOOLS_SS_IMPORT_CONFIGNODE_H
