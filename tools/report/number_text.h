// Formats numbers for people.
#pragma once

#include <string>

namespace headrace::tools {

// Returns three significant digits, from a thousand on with k, M, G or T: "0.0124", "812", "12.3k".
std::string short_number(double value);
// Returns a share in [0, 1] as "43 %", "1.2 %", "0.03 %".
std::string percent(double share);
// Returns "38 ms", "4.1 s", "12 min 5 s", "3 h 20 min".
std::string duration(double seconds);
// Returns "340 ns", "12.3 µs", "1.24 ms".
std::string nanoseconds_text(double ns);

}  // namespace headrace::tools
