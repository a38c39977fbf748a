//===- Log.h - Messages for the caller --------------------------*- C++ -*-===//
#ifndef SINKSTATE_OBSERVE_LOG_H
#define SINKSTATE_OBSERVE_LOG_H

#include "capi/Failure.h"

#include "sinkstate/sinkstate.h"

namespace sinkstate::runtime {

void setLog(ss_log_callback callback, void *context, ss_log_level most);
/// Whether somebody listens at this level; at SS_LOG_OFF: at all.
bool logs(ss_log_level level);
void sendLog(ss_log_level level, const char *subject, const char *message);

/// Joins the parts only where somebody listens.
template <typename... Parts>
void writeLog(ss_log_level level, const char *subject, const Parts &...parts) {
  if (logs(level))
    sendLog(level, subject, text(parts...).c_str());
}

} // namespace sinkstate::runtime

#endif
