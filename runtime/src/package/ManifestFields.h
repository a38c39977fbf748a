//===- ManifestFields.h - Typed access to manifest fields -------*- C++ -*-===//
//
// Reads one field of a JSON object and says in one line what is wrong with it
// if it is missing, of another type or out of range.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PACKAGE_MANIFESTFIELDS_H
#define SINKSTATE_PACKAGE_MANIFESTFIELDS_H

#include "capi/Failure.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace sinkstate::runtime {

using Json = nlohmann::json;

template <typename... Parts>
[[noreturn]] void malformed(const Parts &...parts) {
  fail(SS_MALFORMED_PACKAGE, "manifest.json: ", parts...,
       ": build the package again");
}

/// One JSON object and how to name it in an error ("layer 'layer0'").
class ManifestObject {
public:
  ManifestObject(const Json &json, std::string where)
      : json(json), where(std::move(where)) {
    if (!json.is_object())
      malformed(this->where, " is ", json.type_name(), ", expected an object");
  }

  const std::string &place() const { return where; }
  bool has(const char *name) const { return json.contains(name); }

  const Json &field(const char *name, const char *expected) const {
    auto found = json.find(name);
    if (found == json.end())
      malformed(where, ": field '", name, "' is missing, expected ", expected);
    return *found;
  }

  std::string string(const char *name) const {
    const Json &value = field(name, "a string");
    if (!value.is_string())
      wrongType(name, value, "a string");
    return value.get<std::string>();
  }

  std::string nonEmptyString(const char *name) const {
    std::string value = string(name);
    if (value.empty())
      malformed(where, ": field '", name, "' is empty, expected a name");
    return value;
  }

  bool boolean(const char *name) const {
    const Json &value = field(name, "true or false");
    if (!value.is_boolean())
      wrongType(name, value, "true or false");
    return value.get<bool>();
  }

  int32_t integer(const char *name, int64_t low, int64_t high) const {
    const Json &value = field(name, "an integer");
    if (!value.is_number_integer())
      wrongType(name, value, "an integer");
    // An unsigned value above INT64_MAX would wrap: it is out of range anyway.
    bool huge = value.is_number_unsigned() &&
                value.get<uint64_t>() > uint64_t(INT64_MAX);
    int64_t number = huge ? INT64_MAX : value.get<int64_t>();
    if (number < low || number > high)
      malformed(where, ": field '", name, "' is ", number, ", expected ", low,
                " to ", high);
    return int32_t(number);
  }

  double number(const char *name) const {
    const Json &value = field(name, "a number");
    if (!value.is_number())
      wrongType(name, value, "a number");
    double number = value.get<double>();
    if (!std::isfinite(number))
      malformed(where, ": field '", name, "' is not finite");
    return number;
  }

  const Json &array(const char *name) const {
    const Json &value = field(name, "an array");
    if (!value.is_array())
      wrongType(name, value, "an array");
    return value;
  }

  ManifestObject object(const char *name) const {
    return {field(name, "an object"), where + ", '" + name + "'"};
  }

private:
  [[noreturn]] void wrongType(const char *name, const Json &value,
                              const char *expected) const {
    malformed(where, ": field '", name, "' is of type ", value.type_name(),
              ", expected ", expected);
  }

  const Json &json;
  std::string where;
};

} // namespace sinkstate::runtime

#endif
