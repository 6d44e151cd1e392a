#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/tools/shell/completions.h"

namespace headrace::tools {
namespace {

std::vector<std::string> words_of(const CommandEntry& command) {
  std::vector<std::string> words;
  for (const CommandEntry& below : command.commands) words.push_back(below.path.back());
  for (const OptionEntry& option : command.options) {
    if (!option.name.empty()) words.push_back(option.name);
  }
  return words;
}

// Returns the code that completes the value of an option, or an argument.
std::string values_of(const OptionEntry& option) {
  const std::string words = fmt::format("{}", fmt::join(option.choices, " "));
  switch (option.value) {
    case ValueKind::kChoice: return fmt::format("words \"{}\"", words);
    case ValueKind::kFile: return "files";
    case ValueKind::kFolder: return fmt::format("folders \"{}\"", words);
    case ValueKind::kNone:
    case ValueKind::kText: break;
  }
  return "nothing";
}

std::string case_of(const CommandEntry& command) {
  std::string text = fmt::format("    \"{}\")\n      case $option in\n", command.name());
  std::string argument = "nothing";
  for (const OptionEntry& option : command.options) {
    if (option.value == ValueKind::kNone) continue;
    if (option.name.empty()) {
      argument = values_of(option);
    } else {
      text += fmt::format("        {}) _headrace_{} ;;\n", option.name, values_of(option));
    }
  }
  const std::string words = fmt::format("{}", fmt::join(words_of(command), " "));
  return text + fmt::format("        *) _headrace_choose \"{}\" {} ;;\n      esac ;;\n", words, argument);
}

// The commands that have commands, and those that have none: how far the words of a command go.
std::string commands_of_all(const CommandEntry& program) {
  std::string text;
  for_each_command(program, [&](const CommandEntry& command) {
    if (!command.path.empty()) text += fmt::format("{}\"{}\"", text.empty() ? "" : " | ", command.name());
  });
  return text;
}

// Options that take a value, so that the word after one is no command or argument.
std::string options_with_value(const CommandEntry& program) {
  std::string text;
  for_each_command(program, [&](const CommandEntry& command) {
    for (const OptionEntry& option : command.options) {
      if (option.name.empty() || option.value == ValueKind::kNone) continue;
      if ((" | " + text + " | ").find(" | " + option.name + " | ") != std::string::npos) continue;
      text += (text.empty() ? "" : " | ") + option.name;
    }
  });
  return text;
}

}  // namespace

std::string bash_completion(const CommandEntry& program) {
  std::string cases;
  for_each_command(program, [&](const CommandEntry& command) { cases += case_of(command); });
  return fmt::format(R"(# Completion of headrace(1) in bash. Made from its options: do not edit.
_headrace_nothing() {{ COMPREPLY=(); }}
_headrace_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }}
_headrace_files() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
}}
_headrace_folders() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"; compgen -d -- "$word")
}}
# WORDS ARGUMENT...: options and commands where one begins, else what the command's argument may be
_headrace_choose() {{
  local words=$1
  shift
  if [[ $word == -* || $1 == nothing ]]; then _headrace_words "$words"; else "_headrace_$@"; fi
}}

_headrace() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} option="" command="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
      {1}) option=${{COMP_WORDS[i]}}; ((++i)); ((i < COMP_CWORD)) && option="" ;;
      *)
        case "$command${{command:+ }}${{COMP_WORDS[i]}}" in
          {0}) command+="${{command:+ }}${{COMP_WORDS[i]}}" ;;
        esac ;;
    esac
  done
  COMPREPLY=()
  case $command in
{2}  esac
}}
complete -F _headrace headrace
)",
                     commands_of_all(program), options_with_value(program), cases);
}

}  // namespace headrace::tools
