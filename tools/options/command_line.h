// The command line as a whole: the layout of its help, its checks, its words in messages.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <vector>

namespace headrace::tools {

// The layout of the command's help.

// Returns "-h, --help", "--prefetch N", "FOLDER".
std::string name_of(const CLI::Option& option);
// Returns the option's description, with its default and the options that it needs or excludes.
std::string description_of(const CLI::Option& option);
// Return the commands and options that people may type, in order.
std::vector<const CLI::App*> commands_of(const CLI::App& command);
std::vector<const CLI::Option*> options_of(const CLI::App& command);

// The end of the program's help and of the man page.
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

// Checks of the command line as a whole, and --standalone, an option of every command.

// Throws ConfigError for an unknown command ("did you mean 'train'?"), an unknown option, an option without its
// value or given twice, an empty value for a file, folder or name, a flag with a value, an unexpected argument, or
// a missing command or option. Returns if help or the version is requested before the error.
void check_usage(const CLI::App& program, int argc, const char* const* argv);

// Adds --standalone to every command of the program. A command that reads data, trains, measures or writes a data
// set throws ConfigError if the process is one of several and neither --standalone nor --world, which says what it
// serves, is given. Commands that only inspect this machine, a cache or a run accept the option and run anyway;
// those that workers run together join the others without it.
void add_standalone_option(CLI::App& program);

// The command's names of options in messages.

// Makes messages name only options of the typed command, from now on: hints about options that it lacks are
// omitted. REQUIRES: `program` lives as long as messages are made.
void speak_command(const CLI::App& program);

}  // namespace headrace::tools
