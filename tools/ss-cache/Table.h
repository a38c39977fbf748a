//===- Table.h - Text in columns --------------------------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_CACHE_TABLE_H
#define SINKSTATE_TOOLS_SS_CACHE_TABLE_H

#include <cstdint>
#include <ctime>
#include <ostream>
#include <string>
#include <vector>

namespace ss_cache {

/// Rows of cells, each column as wide as its widest cell. The first row is the
/// heading.
class Table {
public:
  /// `alignment`: 'l' or 'r' for each column.
  explicit Table(std::string alignment) : alignment(std::move(alignment)) {}
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(std::ostream &out) const;

private:
  std::string alignment;
  std::vector<std::vector<std::string>> rows;
};

/// "9.8 KiB"
std::string readableSize(uint64_t bytes);
/// "2026-01-31 12:00:00Z"
std::string readableTime(std::time_t time);
/// "3 d", "now": how long before `now`.
std::string readableAge(std::time_t time, std::time_t now);
/// Without control characters, which a terminal would obey.
std::string printable(std::string text);

} // namespace ss_cache

#endif
