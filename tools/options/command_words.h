// The names of options in messages, as the command has them.
#pragma once

namespace CLI {
class App;
}

namespace headrace::tools {

// From now on messages speak of the options of the command that was typed, and of no others: what it lacks is left
// out. `program` must live as long as messages are made.
void speak_command(const CLI::App& program);

}  // namespace headrace::tools
