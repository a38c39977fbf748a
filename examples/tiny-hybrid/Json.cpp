//===- Json.cpp - Strict reading of JSON objects --------------------------===//

#include "Json.h"

#include <set>
#include <vector>

using namespace tiny_hybrid;
using nlohmann::json;

namespace {

/// Builds nothing; says where the text stops being JSON and which key appears
/// twice in one object.
class StrictSax : public nlohmann::json_sax<json> {
public:
  std::string message;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override {
    --depth;
    return true;
  }
  bool start_object(size_t) override {
    keys.emplace_back();
    return enter();
  }
  bool end_object() override {
    keys.pop_back();
    --depth;
    return true;
  }
  bool key(string_t &name) override {
    if (keys.back().insert(name).second)
      return true;
    message = "found the key '" + name + "' twice, expected it once";
    return false;
  }
  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    message = "found no valid JSON at byte " + std::to_string(position) +
              ", expected one object";
    return false;
  }

private:
  /// Deep nesting would overflow the stack of whoever walks the value.
  bool enter() {
    if (++depth <= 64)
      return true;
    message = "found more than 64 nested levels, expected a flat object";
    return false;
  }

  int depth = 0;
  std::vector<std::set<std::string>> keys;
};

} // namespace

Result<json> tiny_hybrid::parseJsonObject(std::string_view text) {
  StrictSax strict;
  if (!json::sax_parse(text.begin(), text.end(), &strict))
    return Error{strict.message};
  json value = json::parse(text.begin(), text.end(), nullptr,
                           /*allow_exceptions=*/false);
  if (!value.is_object())
    return Error{"found " + describe(value) + ", expected one JSON object"};
  return value;
}

std::string tiny_hybrid::describe(const json &value) {
  constexpr size_t shown = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                json::error_handler_t::replace);
  if (text.size() > shown)
    text = text.substr(0, shown) + "...";
  return text;
}
