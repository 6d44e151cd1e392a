// Suggestions for names that do not exist.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Returns the minimum number of insertions, removals, replacements and swaps of neighbours that turn `a` into `b`,
// ignoring case.
int edit_distance(std::string_view a, std::string_view b);

// Returns the nearest of `known`, the first on ties; empty if none is near: more than a third of the letters
// differ and neither name begins with the other (of three letters or more).
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// Returns ": did you mean 'X'?", or an empty string.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// Returns ": did you mean 'data/train'?" if a name in the missing path is near to an existing one, else an empty
// string. Looks at the first ten thousand names of one folder.
std::string did_you_mean_path(const std::filesystem::path& missing);

}  // namespace headrace
