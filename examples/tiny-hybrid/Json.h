//===- Json.h - Strict reading of JSON objects ------------------*- C++ -*-===//
#ifndef TINY_HYBRID_JSON_H
#define TINY_HYBRID_JSON_H

#include "Result.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tiny_hybrid {

/// Parses one JSON object and nothing after it; a key may appear once in an
/// object.
Result<nlohmann::json> parseJsonObject(std::string_view text);

/// A value as it is shown in an error: its text, shortened.
std::string describe(const nlohmann::json &value);

} // namespace tiny_hybrid

#endif // TINY_HYBRID_JSON_H
