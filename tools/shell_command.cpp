// `headrace shell`: the man page and the completions, as the build writes them. Hidden: people have them
// installed.
#include <CLI/CLI.hpp>
#include <memory>

#include "headrace/tools/commands.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/shell/completions.h"
#include "headrace/tools/shell/man_page.h"

namespace headrace::tools {
namespace {

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
