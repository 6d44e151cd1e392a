// The layout of the command's help.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

namespace headrace::tools {

// Returns "-h, --help", "--prefetch N", "FOLDER".
std::string name_of(const CLI::Option& option);
// Returns the option's description, with its default and the options that it needs or excludes.
std::string description_of(const CLI::Option& option);
// Return the commands and options that people may type, in order.
std::vector<const CLI::App*> commands_of(const CLI::App& command);
std::vector<const CLI::Option*> options_of(const CLI::App& command);

// What the help of the program and the man page end with.
struct NamedText {
  const char *name, *text;
};
std::span<const NamedText> exit_statuses();
std::span<const NamedText> environment_variables();

// Two columns: "--prefetch N" and its description, with its default; lines of 100 characters, or of the terminal's
// width if that is less.
class HelpText : public CLI::Formatter {
 public:
  HelpText();

  std::string make_usage(const CLI::App* command, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  std::string line(const std::string& name, const std::string& description) const;

  std::size_t width_;
};

}  // namespace headrace::tools
