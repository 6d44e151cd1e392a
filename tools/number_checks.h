// Which numbers the options of the commands take.
#pragma once

namespace CLI {
class App;
}

namespace headrace::tools {

// Call it once all options of the command are added: whole numbers beyond their limits are refused. CLI11 by
// itself takes -1 for the largest unsigned number, and so one of more digits than fit.
void check_numbers(CLI::App& command);

}  // namespace headrace::tools
