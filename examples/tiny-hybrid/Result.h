//===- Result.h - A value or one line that says what is wrong ---*- C++ -*-===//
//
// The example crosses no library boundary with exceptions: what can fail
// returns a Result or a Status.
//
//===----------------------------------------------------------------------===//
#ifndef TINY_HYBRID_RESULT_H
#define TINY_HYBRID_RESULT_H

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace tiny_hybrid {

/// One line: which file or key, what was found, what was expected.
struct Error {
  std::string message;
  /// The device that was asked for, or its driver, is not on this machine.
  bool deviceMissing = false;
};

/// Empty on success.
using Status = std::optional<Error>;

/// Either a value or an Error.
///
///   Result<Config> config = Config::load(path);
///   if (!config)
///     return config.takeError();
///   use(*config);
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Error error) : content(std::move(error)) {}

  explicit operator bool() const { return content.index() == 0; }
  T &operator*() { return std::get<0>(content); }
  const T &operator*() const { return std::get<0>(content); }
  T *operator->() { return &std::get<0>(content); }
  const T *operator->() const { return &std::get<0>(content); }
  const std::string &error() const { return std::get<1>(content).message; }
  Error takeError() { return std::move(std::get<1>(content)); }

private:
  std::variant<T, Error> content;
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_RESULT_H
