#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/tools/shell/completions.h"

namespace headrace::tools {
namespace {

// Within single quotes, in a description of _arguments.
std::string zsh_text(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '\'') {
      safe += "'\\''";
    } else {
      if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') safe += '\\';
      safe += letter;
    }
  }
  return safe;
}

std::string zsh_value(const OptionEntry& option) {
  switch (option.value) {
    case ValueKind::kNone: return "";
    case ValueKind::kText: return ":value: ";
    case ValueKind::kChoice: return fmt::format(":value:({})", fmt::join(option.choices, " "));
    case ValueKind::kFile: return ":file:_files";
    case ValueKind::kFolder: return ":folder:_files -/";
  }
  return "";
}

std::string zsh_arguments(const CommandEntry& command) {
  std::string text = "_arguments";
  for (const OptionEntry& option : command.options) {
    text += option.name.empty() ? fmt::format(" \\\n        '1{}'", zsh_value(option))
                                : fmt::format(" \\\n        '{}[{}]{}'", option.name, zsh_text(option.description),
                                              zsh_value(option));
  }
  return text;
}

std::string zsh_case(const CommandEntry& command, int depth) {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  if (command.commands.empty()) return indent + zsh_arguments(command) + "\n";
  std::string text = indent + "if (( CURRENT == 2 )); then\n" + indent + "  local -a commands=(";
  for (const CommandEntry& below : command.commands) {
    text += fmt::format("\n{}    '{}:{}'", indent, below.path.back(), zsh_text(below.description));
  }
  text += fmt::format(")\n{0}  _describe command commands\n{0}  {1}\n{0}  return\n{0}fi\n", indent,
                      zsh_arguments(command));
  text += indent + "shift words\n" + indent + "(( CURRENT-- ))\n" + indent + "case $words[1] in\n";
  for (const CommandEntry& below : command.commands) {
    text += fmt::format("{}  {})\n{}{}    ;;\n", indent, below.path.back(), zsh_case(below, depth + 2), indent);
  }
  return text + indent + "esac\n";
}

}  // namespace

std::string zsh_completion(const CommandEntry& program) {
  return "#compdef headrace\n# Completion of headrace(1) in zsh. Made from its options: do not edit.\n_headrace() "
         "{\n" +
         zsh_case(program, 1) + "}\n_headrace \"$@\"\n";
}

}  // namespace headrace::tools
