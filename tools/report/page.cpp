#include "headrace/tools/report/page.h"

#include <string_view>

namespace headrace::tools {

// page.html with its style, its scripts and Chart.js within it, in a source that embed_page.cmake writes.
std::string page_template();

std::string make_page(const nlohmann::json& data) {
  const std::string written = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;  // no text of a user ends the element that holds the data
  for (const char letter : written) {
    if (letter == '<') {
      safe += "\\u003c";
    } else {
      safe += letter;
    }
  }
  static constexpr std::string_view kPlace = "null</script>";  // the first is the element of the data
  std::string page = page_template();
  return page.replace(page.find(kPlace), std::string_view("null").size(), safe);
}

}  // namespace headrace::tools
