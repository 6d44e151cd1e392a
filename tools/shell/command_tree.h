// The commands as data, for completions and the man page.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace headrace::tools {

// The kind of value that an option takes.
enum class ValueKind { kNone, kText, kChoice, kFile, kFolder };

struct OptionEntry {
  std::string name;                       // "--prefetch"; "" for an argument
  std::string label;                      // "--prefetch N", "FOLDER"
  std::string description;                // one line
  ValueKind value = ValueKind::kNone;     // kNone: a flag
  std::vector<std::string> choices = {};  // of kChoice, or as alternatives to a folder
};

struct CommandEntry {
  std::vector<std::string> path;  // {"bench", "input"}; empty: the program itself
  std::string description;
  std::vector<OptionEntry> options = {};
  std::vector<CommandEntry> commands = {};

  // Returns "bench input".
  std::string name() const;
};

// Returns the commands, without hidden ones.
CommandEntry command_tree(const CLI::App& program);

// Calls `visit(entry)` for the entry and all commands below it, parents first.
template <typename Visit>
void for_each_command(const CommandEntry& entry, const Visit& visit) {
  visit(entry);
  for (const CommandEntry& below : entry.commands) for_each_command(below, visit);
}

}  // namespace headrace::tools

// Completions that shells offer when the user types Tab.

namespace headrace::tools {

// Return scripts for the shell's folder of completions.
std::string bash_completion(const CommandEntry& program);
std::string zsh_completion(const CommandEntry& program);
std::string fish_completion(const CommandEntry& program);

}  // namespace headrace::tools
