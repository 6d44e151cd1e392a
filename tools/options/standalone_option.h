// --standalone, which every command has, and what those do without it that a launcher started as one of several.
#pragma once

namespace CLI {
class App;
}

namespace headrace::tools {

// Adds --standalone to every command of the program. One that reads data, trains, measures or writes a data set
// throws ConfigError where the process is one of several and neither that is given nor --world, which says what it
// serves. Commands that only look at this machine, a cache or a run take the option and run anyway.
void add_standalone_option(CLI::App& program);

}  // namespace headrace::tools
