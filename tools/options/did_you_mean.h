// What a user may have meant by a name that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace::tools {

// Letters to insert, remove, replace or swap with their neighbour (each counts one) to make `b` of `a`; upper and
// lower case are alike.
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, the first among equals. Empty where none is near: more than a third of the letters
// differ and neither name begins with the other (of three letters or more).
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// ": did you mean 'X'?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace headrace::tools
