// Completions that shells offer when the user types Tab.
#pragma once

#include <string>

#include "headrace/tools/shell/command_tree.h"

namespace headrace::tools {

// Return scripts for the shell's folder of completions.
std::string bash_completion(const CommandEntry& program);
std::string zsh_completion(const CommandEntry& program);
std::string fish_completion(const CommandEntry& program);

}  // namespace headrace::tools
