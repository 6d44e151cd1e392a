// --standalone, an option of every command, and the behaviour without it when a launcher started several
// processes.
#pragma once

namespace CLI {
class App;
}

namespace headrace::tools {

// Adds --standalone to every command of the program. A command that reads data, trains, measures or writes a data
// set throws ConfigError if the process is one of several and neither --standalone nor --world, which says what it
// serves, is given. Commands that only inspect this machine, a cache or a run accept the option and run anyway;
// those that workers run together join the others without it.
void add_standalone_option(CLI::App& program);

}  // namespace headrace::tools
