// The command's names of options in messages.
#pragma once

namespace CLI {
class App;
}

namespace headrace::tools {

// Makes messages name only options of the typed command, from now on: hints about options that it lacks are
// omitted. REQUIRES: `program` lives as long as messages are made.
void speak_command(const CLI::App& program);

}  // namespace headrace::tools
