//===- HelpText.h - Options as --help lists them ----------------*- C++ -*-===//
#ifndef SS_HELP_TEXT_H
#define SS_HELP_TEXT_H

#include <string>
#include <string_view>

namespace ss_tools {

/// "--steps", "N" and a description below them, in lines of at most 80 columns
/// where words allow it.
std::string helpEntry(std::string_view option, std::string_view value,
                      std::string_view description);

} // namespace ss_tools

#endif
