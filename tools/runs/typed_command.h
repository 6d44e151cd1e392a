// What a user typed, for records of a run.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace headrace::tools {

// "headrace train --recipe mnist-mlp --data 'my data'", for a shell: the options in their order, defaults left
// out.
std::string typed_command(const CLI::App& command);

}  // namespace headrace::tools
