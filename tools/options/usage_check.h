// Checks what a user typed: commands and options exist, values stand where they belong.
#pragma once

namespace CLI {
class App;
}

namespace headrace::tools {

// ConfigError for an unknown command ("did you mean 'train'?"), an unknown option, an option without its value or
// given twice, an empty value where a file, folder or name is wanted, a flag with a value, an argument that
// belongs to nothing, a command or option that is missing. Returns where help or the version is asked for before.
void check_usage(const CLI::App& program, int argc, const char* const* argv);

}  // namespace headrace::tools
