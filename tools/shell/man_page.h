// headrace(1).
#pragma once

#include <string>

#include "headrace/tools/shell/command_tree.h"

namespace headrace::tools {

// Returns the page in the macros of man(7).
std::string man_page(const CommandEntry& program, const std::string& version);

}  // namespace headrace::tools
