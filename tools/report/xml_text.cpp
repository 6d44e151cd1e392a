#include "headrace/tools/report/xml_text.h"

#include <nlohmann/json.hpp>

namespace headrace::tools {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string valid_utf8(std::string_view text) {
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

bool is_noncharacter(std::string_view text) {  // U+FFFE, U+FFFF
  return text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
}

}  // namespace

std::string xml_text(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string escaped;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const char letter = valid[i];
    switch (letter) {
      case '&': escaped += "&amp;"; continue;
      case '<': escaped += "&lt;"; continue;
      case '>': escaped += "&gt;"; continue;
      case '"': escaped += "&quot;"; continue;
      case '\'': escaped += "&#39;"; continue;
      default: break;
    }
    if (is_noncharacter(std::string_view(valid).substr(i))) {
      escaped += kReplacement;
      i += 2;
    } else if (static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t') {
      escaped += kReplacement;
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

}  // namespace headrace::tools
