#include "headrace/tools/options/help_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace headrace::tools {
namespace {

constexpr std::size_t kMaxWidth = 100, kMinWidth = 60, kNameColumn = 26;

std::size_t line_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kMaxWidth;
  return std::clamp<std::size_t>(size.ws_col, kMinWidth, kMaxWidth);
}

}  // namespace

std::string name_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_type_name();
  std::string name = option.get_name(false, true);
  if (const auto comma = name.find(','); comma != std::string::npos) name.insert(comma + 1, " ");
  if (option.get_items_expected_max() > 0) name += " " + option.get_type_name();
  return name;
}

std::string description_of(const CLI::Option& option) {
  std::string what = option.get_description();
  if (!option.get_default_str().empty()) what += "; default " + option.get_default_str();
  for (const CLI::Option* other : option.get_needs()) what += "; only with " + other->get_name();
  for (const CLI::Option* other : option.get_excludes()) what += "; not with " + other->get_name();
  return what;
}

std::vector<const CLI::App*> commands_of(const CLI::App& command) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* one : command.get_subcommands({})) {
    if (!one->get_group().empty()) commands.push_back(one);
  }
  return commands;
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

HelpText::HelpText() : width_(line_width()) {}

std::string HelpText::make_usage(const CLI::App* command, std::string name) const {
  std::string usage = "\nUsage: " + name + " ";
  if (!command->get_subcommands({}).empty()) return usage + "COMMAND [OPTIONS]\n";
  for (const CLI::Option* option : command->get_options()) {
    if (option->get_positional()) {
      usage += option->get_type_name() + " ";
    } else if (option->get_required()) {
      usage += option->get_name() + " " + option->get_type_name() + " ";
    }
  }
  return usage + "[OPTIONS]\n";
}

std::string HelpText::make_option(const CLI::Option* option, bool /*is_positional*/) const {
  return line(name_of(*option), description_of(*option));
}

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return line(command->get_name(), command->get_description());
}

std::string HelpText::line(const std::string& name, const std::string& description) const {
  std::string text = "  " + name;
  std::size_t column = text.size();
  const auto indent = [&](std::size_t from) {
    text.append(kNameColumn - from, ' ');
    column = kNameColumn;
  };
  if (column + 2 > kNameColumn) {
    text += '\n';
    indent(0);
  } else {
    indent(column);
  }
  std::istringstream words(description);
  for (std::string word; words >> word;) {
    if (column > kNameColumn && column + 1 + word.size() > width_) {
      text += '\n';
      indent(0);
    }
    if (column > kNameColumn) text += ' ', ++column;
    text += word;
    column += word.size();
  }
  return text + "\n";
}

}  // namespace headrace::tools
