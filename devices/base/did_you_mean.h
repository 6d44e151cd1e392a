// What a user may have meant by a name that does not exist.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// Letters to insert, remove, replace or swap with their neighbour (each counts one) to make `b` of `a`; upper and
// lower case are alike.
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, the first among equals. Empty where none is near: more than a third of the letters
// differ and neither name begins with the other (of three letters or more).
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// ": did you mean 'X'?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// For a path where nothing lies: ": did you mean 'data/train'?" where a name in it is near to one that is there,
// or nothing. Looks at the names in one folder, the first ten thousand of them.
std::string did_you_mean_path(const std::filesystem::path& missing);

}  // namespace headrace
