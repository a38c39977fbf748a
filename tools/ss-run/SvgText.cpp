//===- SvgText.cpp - Text and numbers in pictures -------------------------===//

#include "SvgText.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace ss_run {
namespace {

/// XML has no bytes that are not UTF-8; a path may.
std::string validUtf8(const std::string &text) {
  using nlohmann::json;
  return json::parse(
      json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

} // namespace

std::string escapeXml(const std::string &text) {
  std::string escaped;
  for (char c : validUtf8(text)) {
    if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '&')
      escaped += "&amp;";
    else
      escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return escaped;
}

std::string svgNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

} // namespace ss_run
