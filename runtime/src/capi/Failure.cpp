//===- Failure.cpp - The last error of a thread ---------------------------===//

#include "capi/Failure.h"

#include "observe/Log.h"

#include <cstddef>

namespace sinkstate::runtime {
namespace {
// A fixed buffer: keeping a message can then never fail itself.
constexpr size_t kLastErrorBytes = 1024;
thread_local char lastErrorText[kLastErrorBytes] = "";
} // namespace

void setLastError(const char *message) noexcept {
  size_t length = 0;
  for (; message[length] && length + 1 < kLastErrorBytes; ++length) {
    auto character = static_cast<unsigned char>(message[length]);
    lastErrorText[length] =
        character < 0x20 || character == 0x7f ? ' ' : message[length];
  }
  lastErrorText[length] = '\0';
}

const char *lastError() noexcept { return lastErrorText; }

ss_result reportFailure(ss_result code, const char *function,
                        const char *message) noexcept {
  setLastError(message);
  if (code != SS_INTERNAL && code != SS_DEVICE_ERROR && code != SS_DEVICE_LOST)
    return code;
  try {
    writeLog(SS_LOG_ERROR, "call", function, ": ", lastErrorText);
  } catch (const std::exception &) {
    // No memory for the line: the caller has the error all the same.
  }
  return code;
}

} // namespace sinkstate::runtime
