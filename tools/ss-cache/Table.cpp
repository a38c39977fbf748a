//===- Table.cpp - Text in columns ----------------------------------------===//

#include "Table.h"

#include <algorithm>
#include <cstdio>

namespace ss_cache {

void Table::print(std::ostream &out) const {
  std::vector<size_t> widths(alignment.size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") +
              (alignment[i] == 'r' ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

std::string readableSize(uint64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  double value = double(bytes);
  const char *unit = "";
  for (const char *next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024)
      break;
    value /= 1024;
    unit = next;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, unit);
  return text;
}

std::string readableTime(std::time_t time) {
  std::tm parts = {};
  char text[64];
  if (!::gmtime_r(&time, &parts) ||
      !std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts))
    return "unknown";
  return text;
}

std::string readableAge(std::time_t time, std::time_t now) {
  struct Unit {
    std::time_t seconds;
    const char *name;
  };
  const std::time_t age = now - time;
  for (const Unit &unit : {Unit{86400, " d"}, {3600, " h"}, {60, " min"}})
    if (age >= unit.seconds)
      return std::to_string(age / unit.seconds) + unit.name;
  return "now";
}

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      '?');
  return text;
}

} // namespace ss_cache
