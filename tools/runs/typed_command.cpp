#include "headrace/tools/runs/typed_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace headrace::tools {
namespace {

bool is_plain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("-_./:,=+@%").find(letter) != std::string_view::npos;
}

std::string quoted(const std::string& text) {
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string safe = "'";
  for (const char letter : text) letter == '\'' ? safe += "'\\''" : safe += letter;
  return safe + "'";
}

std::string path_to(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? std::string() : path_to(*parent) + " ") + command.get_name();
}

}  // namespace

std::string typed_command(const CLI::App& command) {
  std::string line = path_to(command);
  for (const CLI::Option* option : command.parse_order()) {
    if (option->nonpositional()) line.append(" ").append(option->get_name());
    if (option->get_items_expected_max() == 0) continue;
    for (const std::string& value : option->results()) line.append(" ").append(quoted(value));
  }
  return line;
}

}  // namespace headrace::tools
