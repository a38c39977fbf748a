//===- SvgText.h - Text and numbers in pictures -----------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_SVGTEXT_H
#define SINKSTATE_TOOLS_SS_RUN_SVGTEXT_H

#include <string>

namespace ss_run {

/// Any bytes as text of an XML document.
std::string escapeXml(const std::string &text);
/// Six digits.
std::string svgNumber(double value);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_SVGTEXT_H
