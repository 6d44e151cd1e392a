#include "headrace/tools/shell/command_tree.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "headrace/tools/options/command_line.h"
#include "headrace/tools/options/options.h"

namespace headrace::tools {
namespace {

// By the word that stands for the value in the help.
ValueKind kind_of(const CLI::Option& option) {
  if (option.nonpositional() && option.get_items_expected_max() == 0) return ValueKind::kNone;
  if (!choices_of(option).empty()) return ValueKind::kChoice;
  const std::string type = option.get_type_name();
  if (type == "FILE" || type == "PATH") return ValueKind::kFile;
  if (type == "FOLDER" || type == "RUN_DIR" || type == "WHERE") return ValueKind::kFolder;
  return ValueKind::kText;
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry{.name = option.get_positional() ? "" : option.get_name(),
                    .label = name_of(option),
                    .description = description_of(option),
                    .value = kind_of(option),
                    .choices = choices_of(option)};
  if (option.get_type_name() == "WHERE") entry.choices = {"memory"};
  return entry;
}

CommandEntry entry_of(const CLI::App& command, std::vector<std::string> path) {
  CommandEntry entry{.path = std::move(path), .description = command.get_description()};
  for (const CLI::Option* option : options_of(command)) entry.options.push_back(entry_of(*option));
  for (const CLI::App* below : commands_of(command)) {
    std::vector<std::string> longer = entry.path;
    longer.push_back(below->get_name());
    entry.commands.push_back(entry_of(*below, std::move(longer)));
  }
  return entry;
}

}  // namespace

std::string CommandEntry::name() const { return fmt::format("{}", fmt::join(path, " ")); }

CommandEntry command_tree(const CLI::App& program) { return entry_of(program, {}); }

}  // namespace headrace::tools
