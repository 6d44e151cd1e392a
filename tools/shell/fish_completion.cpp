#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/tools/shell/completions.h"

namespace headrace::tools {
namespace {

std::string fish_quoted(std::string_view text) {
  std::string safe = "'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') safe += '\\';
    safe += letter;
  }
  return safe + "'";
}

// Whether the words that were typed are this command, and none below it.
std::string fish_condition(const CommandEntry& command) {
  std::string condition;
  for (const std::string& word : command.path) {
    condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", word);
  }
  if (command.path.empty()) return "__fish_use_subcommand";
  for (const CommandEntry& below : command.commands) {
    condition += "; and not __fish_seen_subcommand_from " + below.path.back();
  }
  return condition;
}

std::string fish_value(const OptionEntry& option) {
  switch (option.value) {
    case ValueKind::kNone: return "";
    case ValueKind::kText: return " -x";
    case ValueKind::kChoice:
      return fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case ValueKind::kFile: return " -r -F";
    case ValueKind::kFolder:
      return fmt::format(" -x -a {}", fish_quoted(fmt::format("{} (__fish_complete_directories)",
                                                              fmt::join(option.choices, " "))));
  }
  return "";
}

}  // namespace

std::string fish_completion(const CommandEntry& program) {
  std::string text =
      "# Completion of headrace(1) in fish. Made from its options: do not edit.\ncomplete -c headrace -f\n";
  for_each_command(program, [&](const CommandEntry& command) {
    const std::string begin = fmt::format("complete -c headrace -n {}", fish_quoted(fish_condition(command)));
    for (const CommandEntry& below : command.commands) {
      text += fmt::format("{} -a {} -d {}\n", begin, below.path.back(), fish_quoted(below.description));
    }
    for (const OptionEntry& option : command.options) {
      if (option.name.empty()) {
        text += fmt::format("{} -F\n", begin);
      } else {
        text += fmt::format("{} -l {}{} -d {}\n", begin, option.name.substr(2), fish_value(option),
                            fish_quoted(option.description));
      }
    }
  });
  return text;
}

}  // namespace headrace::tools
