//===- HelpText.cpp - Options as --help lists them ------------------------===//

#include "HelpText.h"

namespace ss_tools {

std::string helpEntry(std::string_view option, std::string_view value,
                      std::string_view description) {
  const std::string indent(8, ' ');
  const size_t width = 72;
  std::string lines = "  ";
  lines.append(option).append(" ").append(value).append("\n");
  while (description.size() > width) {
    const size_t space = description.rfind(' ', width);
    if (space == std::string_view::npos)
      break;
    lines.append(indent).append(description.substr(0, space)).append("\n");
    description.remove_prefix(space + 1);
  }
  return lines.append(indent).append(description).append("\n");
}

} // namespace ss_tools
