//===- Result.h - A value or one line that says what is wrong ---*- C++ -*-===//
//
// For the parts of the runtime that report errors as values: nothing they call
// throws past them, so that an engine's thread never unwinds because of a file.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_RESULT_RESULT_H
#define SINKSTATE_RESULT_RESULT_H

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace sinkstate {

/// One line: what was found, what was expected, what to do.
struct Error {
  std::string message;
};

/// Empty on success.
using Status = std::optional<Error>;

/// Either a value or an Error.
///
///   Result<uint64_t> size = environment::read(environment::cacheMaxSize);
///   if (!size)
///     return size.takeError();
///   use(*size);
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : content(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return content.index() == 0; }
  T &operator*() { return *std::get_if<0>(&content); }
  const T &operator*() const { return *std::get_if<0>(&content); }
  T *operator->() { return std::get_if<0>(&content); }
  const T *operator->() const { return std::get_if<0>(&content); }
  const std::string &error() const { return std::get_if<1>(&content)->message; }
  Error takeError() { return std::move(*std::get_if<1>(&content)); }

private:
  std::variant<T, Error> content;
};

} // namespace sinkstate

#endif
