// Numbers in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

// Returns "1,281,167".
inline std::string with_commas(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

// Returns "1 image", "12 images".
inline std::string count_of(std::uint64_t count, std::string_view what) {
  std::string text = with_commas(count);
  text.append(1, ' ').append(what);
  if (count != 1) text += 's';
  return text;
}

}  // namespace headrace
