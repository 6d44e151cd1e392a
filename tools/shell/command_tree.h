// The commands as data, for whoever writes about them.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace headrace::tools {

// What may stand where an option wants a value.
enum class ValueKind { kNone, kText, kChoice, kFile, kFolder };

struct OptionEntry {
  std::string name;                       // "--prefetch"; "" for an argument
  std::string label;                      // "--prefetch N", "FOLDER"
  std::string description;                // one line
  ValueKind value = ValueKind::kNone;     // kNone: a flag
  std::vector<std::string> choices = {};  // of kChoice, or beside a folder
};

struct CommandEntry {
  std::vector<std::string> path;  // {"bench", "input"}; empty: the program itself
  std::string description;
  std::vector<OptionEntry> options = {};
  std::vector<CommandEntry> commands = {};

  // "bench input"
  std::string name() const;
};

// Without what is hidden.
CommandEntry command_tree(const CLI::App& program);

// `visit(entry)` for the entry and all commands below it, each before its own.
template <typename Visit>
void for_each_command(const CommandEntry& entry, const Visit& visit) {
  visit(entry);
  for (const CommandEntry& below : entry.commands) for_each_command(below, visit);
}

}  // namespace headrace::tools
