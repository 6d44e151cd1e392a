// Numbers as people read them.
#pragma once

#include <string>

namespace headrace::tools {

// Three significant digits, from a thousand on with k, M, G or T: "0.0124", "812", "12.3k".
std::string short_number(double value);
// "43 %", "1.2 %", "0.03 %": of a share in [0, 1].
std::string percent(double share);
// "38 ms", "4.1 s", "12 min 5 s", "3 h 20 min"
std::string duration(double seconds);
// "340 ns", "12.3 µs", "1.24 ms"
std::string nanoseconds_text(double ns);

}  // namespace headrace::tools
