//===- Failure.h - Errors inside the runtime --------------------*- C++ -*-===//
//
// Every failure inside the runtime is a `Failure`: a result code of the C API
// and one line that says what was found, what was expected and what to do. The
// C boundary (`guarded`) turns it into an ss_result and ss_last_error().
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CAPI_FAILURE_H
#define SINKSTATE_CAPI_FAILURE_H

#include "sinkstate/sinkstate.h"

#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <utility>

namespace sinkstate::runtime {

class Failure : public std::exception {
public:
  Failure(ss_result code, std::string message)
      : resultCode(code), message(std::move(message)) {}

  ss_result code() const noexcept { return resultCode; }
  const char *what() const noexcept override { return message.c_str(); }

private:
  ss_result resultCode;
  std::string message;
};

/// Joins its arguments into one string: text("slot ", 3, " is free").
template <typename... Parts> std::string text(const Parts &...parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// Throws a Failure whose line is the parts joined.
template <typename... Parts>
[[noreturn]] void fail(ss_result code, const Parts &...parts) {
  throw Failure(code, text(parts...));
}

/// Keeps `message` for ss_last_error() of this thread. Control characters
/// become spaces, so that the message stays one line whatever it quotes.
void setLastError(const char *message) noexcept;
const char *lastError() noexcept;

/// What a function of the C API that failed leaves: the last error, and a message
/// where the fault is the library's or the device's. Returns `code`.
ss_result reportFailure(ss_result code, const char *function,
                        const char *message) noexcept;

/// Runs `body` and turns whatever it throws into a result code. `function`: that
/// which calls this one.
template <typename Body>
ss_result guarded(Body &&body,
                  const char *function = __builtin_FUNCTION()) noexcept {
  try {
    body();
    return SS_OK;
  } catch (const Failure &failure) {
    return reportFailure(failure.code(), function, failure.what());
  } catch (const std::bad_alloc &) {
    return reportFailure(
        SS_OUT_OF_MEMORY, function,
        "the host is out of memory: free slots or use fewer slots");
  } catch (const std::exception &error) {
    return reportFailure(SS_INTERNAL, function, error.what());
  } catch (...) {
    return reportFailure(
        SS_INTERNAL, function,
        "an unknown exception reached the C boundary: report it");
  }
}

} // namespace sinkstate::runtime

#endif
