//===- ConfigNode.cpp - Checked access to a config.json -------------------===//

#include "tools/ss-import/ConfigNode.h"

#include "dialect/ss/SSSizes.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sinkstate;
namespace json = llvm::json;

InFlightDiagnostic ConfigNode::error(const Twine &key) const {
  InFlightDiagnostic diagnostic = emitError(loc);
  diagnostic << "'" << prefix + key.str() << "' ";
  return diagnostic;
}

const json::Value *ConfigNode::find(StringRef key, StringRef expected) const {
  const json::Value *value = object->get(key);
  if (!value)
    error(key) << "is missing, expected " << expected;
  return value;
}

LogicalResult ConfigNode::reject(const Twine &key, const json::Value &found,
                                 const Twine &expected) const {
  std::string text;
  llvm::raw_string_ostream(text) << found;
  if (text.size() > 40)
    text = text.substr(0, 37) + "...";
  return error(key) << "is " << text << ", expected " << expected.str();
}

LogicalResult ConfigNode::readSize(StringRef key, int64_t &size) const {
  std::string expected =
      "a whole number from 1 to " + std::to_string(ss::kMaxSize);
  const json::Value *value = find(key, expected);
  if (!value)
    return failure();
  std::optional<int64_t> whole = value->getAsInteger();
  if (!whole || *whole < 1 || *whole > ss::kMaxSize)
    return reject(key, *value, expected);
  size = *whole;
  return success();
}

LogicalResult ConfigNode::readNumber(StringRef key, double &number) const {
  const json::Value *value = find(key, "a number");
  if (!value)
    return failure();
  std::optional<double> found = value->getAsNumber();
  if (!found)
    return reject(key, *value, "a number");
  number = *found;
  return success();
}

LogicalResult ConfigNode::readBool(StringRef key, bool &flag) const {
  const json::Value *value = find(key, "true or false");
  if (!value)
    return failure();
  std::optional<bool> found = value->getAsBoolean();
  if (!found)
    return reject(key, *value, "true or false");
  flag = *found;
  return success();
}

LogicalResult ConfigNode::readString(StringRef key, std::string &text) const {
  const json::Value *value = find(key, "a string");
  if (!value)
    return failure();
  std::optional<StringRef> found = value->getAsString();
  if (!found)
    return reject(key, *value, "a string");
  text = found->str();
  return success();
}

LogicalResult
ConfigNode::readStrings(StringRef key,
                        SmallVectorImpl<std::string> &texts) const {
  const json::Value *value = find(key, "a list of strings");
  if (!value)
    return failure();
  const json::Array *array = value->getAsArray();
  if (!array)
    return reject(key, *value, "a list of strings");
  for (auto [i, element] : llvm::enumerate(*array)) {
    std::optional<StringRef> found = element.getAsString();
    if (!found)
      return reject(key + "[" + Twine(i) + "]", element, "a string");
    texts.push_back(found->str());
  }
  return success();
}

LogicalResult
ConfigNode::readIntegers(StringRef key,
                         SmallVectorImpl<int64_t> &numbers) const {
  const json::Value *value = find(key, "a list of whole numbers");
  if (!value)
    return failure();
  const json::Array *array = value->getAsArray();
  if (!array)
    return reject(key, *value, "a list of whole numbers");
  for (auto [i, element] : llvm::enumerate(*array)) {
    std::optional<int64_t> found = element.getAsInteger();
    if (!found)
      return reject(key + "[" + Twine(i) + "]", element, "a whole number");
    numbers.push_back(*found);
  }
  return success();
}

std::optional<ConfigNode> ConfigNode::findObject(StringRef key) const {
  if (const json::Object *child = object->getObject(key))
    return ConfigNode(*child, prefix + key.str() + ".", loc);
  return std::nullopt;
}

std::optional<ConfigNode> ConfigNode::readObject(StringRef key) const {
  const json::Value *value = find(key, "an object");
  if (!value)
    return std::nullopt;
  if (!value->getAsObject())
    (void)reject(key, *value, "an object");
  return findObject(key);
}

LogicalResult ConfigNode::checkMultiple(StringRef wholeKey, int64_t whole,
                                        StringRef partKey, int64_t part) const {
  if (whole % part == 0)
    return success();
  return error(wholeKey) << "is " << whole << ", expected a multiple of '"
                         << prefix + partKey.str() << "', " << part;
}
