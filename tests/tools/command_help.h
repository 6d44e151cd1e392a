// What the command's help lists.
#pragma once

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {

// "bench", "input".
using CommandPath = std::vector<std::string>;

inline std::string help_of(CommandPath command) {
  command.emplace_back("--help");
  return headrace(command).output;
}

// Those that a command's help lists.
inline std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help.substr(std::min(help.find("\nCommands:\n"), help.size())));
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 2 && line.starts_with("  ") && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

// `above` and all commands below it.
inline std::vector<CommandPath> all_commands(const CommandPath& above = {}) {
  std::vector<CommandPath> all{above};
  CommandPath below = above;
  below.emplace_back();
  for (const std::string& name : commands_in(help_of(above))) {
    below.back() = name;
    std::ranges::move(all_commands(below), std::back_inserter(all));
  }
  return all;
}

// Those that a command's help lists: "--data".
inline std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> names;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("--");
    if (line.starts_with("  -") && at != std::string::npos)
      names.insert(line.substr(at, line.find_first_of(" ,", at) - at));
  }
  return names;
}

}  // namespace headrace::test
