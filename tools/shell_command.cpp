// `headrace shell`: the man page and the completions, as the build writes them. Hidden: people have them
// installed.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <span>
#include <string>

#include "headrace/tools/commands.h"
#include "headrace/tools/options/command_line.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/shell/command_tree.h"

namespace headrace::tools {
namespace {

// As text that roff leaves alone: a hyphen that is typed stays one.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '\\') {
      safe += "\\e";
    } else if (letter == '-') {
      safe += "\\-";
    } else {
      safe += letter;
    }
  }
  return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
}

// "--prefetch" bold, "N" in italics.
std::string head_of(const OptionEntry& option) {
  if (option.name.empty()) return fmt::format("\\fI{}\\fR", escaped(option.label));
  const std::size_t value = option.value == ValueKind::kNone ? std::string::npos : option.label.rfind(' ');
  if (value == std::string::npos) return fmt::format("\\fB{}\\fR", escaped(option.label));
  return fmt::format("\\fB{}\\fR \\fI{}\\fR", escaped(option.label.substr(0, value)),
                     escaped(option.label.substr(value + 1)));
}

std::string man_options(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& option : command.options) {
    text += fmt::format(".TP\n{}\n{}\n", head_of(option), escaped(option.description));
  }
  return text;
}

std::string section_of(const CommandEntry& command) {
  if (!command.commands.empty()) return "";  // those below it have sections of their own
  return fmt::format(".SS \"headrace {}\"\n{}\n{}", escaped(command.name()), escaped(command.description),
                     man_options(command));
}

// Returns the page in the macros of man(7).
std::string man_page(const CommandEntry& program, const std::string& version) {
  std::string text = fmt::format(
      ".TH HEADRACE 1 \"\" \"Headrace {}\" \"User Commands\"\n"
      ".SH NAME\nheadrace \\- {}\n"
      ".SH SYNOPSIS\n.B headrace\n.I COMMAND\n.RI [ OPTIONS ]\n"
      ".SH OPTIONS\n{}.SH COMMANDS\n",
      escaped(version), escaped("run the Headrace input engine and trainer"), man_options(program));
  for_each_command(program, [&](const CommandEntry& command) {
    if (!command.path.empty()) text += section_of(command);
  });
  const auto list = [&](const char* title, std::span<const NamedText> entries) {
    text += fmt::format(".SH {}\n", title);
    for (const NamedText& one : entries)
      text += fmt::format(".TP\n.B {}\n{}\n", escaped(one.name), escaped(one.text));
  };
  list("EXIT STATUS", exit_statuses());
  list("ENVIRONMENT", environment_variables());
  return text +
         ".SH FILES\nResults as JSON lines, run folders, checkpoints and caches lie where the options name them. "
         "Indexes of data and plans of GPUs lie where the environment says. Nothing else is written.\n";
}

std::string text_for(const std::string& reader, const CommandEntry& program) {
  if (reader == "man") return man_page(program, HEADRACE_VERSION);
  if (reader == "bash") return bash_completion(program);
  return reader == "zsh" ? zsh_completion(program) : fish_completion(program);
}

}  // namespace

void add_shell_command(CLI::App& program) {
  auto* command = program.add_subcommand("shell", "write the man page or a shell's completions");
  command->group("");
  auto reader = std::make_shared<std::string>();
  add_choice(*command, "--for", *reader, "who reads it", {"man", "bash", "zsh", "fish"})->required();
  command->callback([&program, reader] { print(stdout, "{}", Lines{text_for(*reader, command_tree(program))}); });
}

}  // namespace headrace::tools
