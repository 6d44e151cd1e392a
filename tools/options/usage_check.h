// Checks of the command line as a whole, and --standalone, an option of every command.
#pragma once

namespace headrace::tools {

// Throws ConfigError for an unknown command ("did you mean 'train'?"), an unknown option, an option without its
// value or given twice, an empty value for a file, folder or name, a flag with a value, an unexpected argument, or
// a missing command or option. Returns if help or the version is requested before the error.
void check_usage(const CLI::App& program, int argc, const char* const* argv);

// Adds --standalone to every command of the program. A command that reads data, trains, measures or writes a data
// set throws ConfigError if the process is one of several and neither --standalone nor --world, which says what it
// serves, is given. Commands that only inspect this machine, a cache or a run accept the option and run anyway;
// those that workers run together join the others without it.
void add_standalone_option(CLI::App& program);

}  // namespace headrace::tools
