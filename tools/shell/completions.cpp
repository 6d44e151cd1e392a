#include "headrace/tools/shell/command_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
