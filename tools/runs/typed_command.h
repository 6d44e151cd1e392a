// The command that a user typed, for the files of a run.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace headrace::tools {

// Returns "headrace train --recipe mnist-mlp --data 'my data'", for a shell: the options in order, without
// defaults.
std::string typed_command(const CLI::App& command);

}  // namespace headrace::tools
