// Checks the command line: commands and options exist, values are in place.
#pragma once

namespace CLI {
class App;
}

namespace headrace::tools {

// Throws ConfigError for an unknown command ("did you mean 'train'?"), an unknown option, an option without its
// value or given twice, an empty value for a file, folder or name, a flag with a value, an unexpected argument, or
// a missing command or option. Returns if help or the version is requested before the error.
void check_usage(const CLI::App& program, int argc, const char* const* argv);

}  // namespace headrace::tools
