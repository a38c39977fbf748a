//===- Log.cpp - Messages for the caller ----------------------------------===//

#include "observe/Log.h"

#include <atomic>

namespace sinkstate::runtime {
namespace {
std::atomic<ss_log_callback> logCallback{nullptr};
std::atomic<void *> logContext{nullptr};
std::atomic<int> logMost{SS_LOG_OFF};
} // namespace

void setLog(ss_log_callback callback, void *context, ss_log_level most) {
  logMost = SS_LOG_OFF;
  logCallback = callback;
  logContext = context;
  logMost = callback ? most : SS_LOG_OFF;
}

bool logs(ss_log_level level) {
  if (level == SS_LOG_OFF)
    return logCallback.load(std::memory_order_relaxed) != nullptr;
  return level <= logMost.load(std::memory_order_relaxed);
}

void sendLog(ss_log_level level, const char *subject, const char *message) {
  if (ss_log_callback callback = logCallback)
    callback(logContext, level, subject, message);
}

} // namespace sinkstate::runtime
