#include "headrace/tools/options/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/launcher.h"
#include "headrace/devices/base/text.h"
#include "headrace/tools/options/options.h"

namespace headrace::tools {
namespace {

// "bench input "; empty for the program itself.
std::string path_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? std::string() : path_of(*parent) + command.get_name() + " ";
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<std::string> names_of_commands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : commands_of(command)) names.push_back(one->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command)) {
    if (option->nonpositional()) names.push_back(option->get_name());
  }
  return names;
}

std::string see_help(const CLI::App& command) {
  return fmt::format("headrace {}--help shows what there is", path_of(command));
}

const CLI::App* subcommand(const CLI::App& command, const std::string& name) {
  const auto all = command.get_subcommands({});
  const auto found = std::ranges::find_if(all, [&](const CLI::App* one) { return one->get_name() == name; });
  return found == all.end() ? nullptr : *found;
}

const CLI::Option* option_named(const CLI::App& command, const std::string& name) {
  return name.starts_with('-') ? command.get_option_no_throw(name) : nullptr;
}

// An empty value is what a shell makes of a variable that is not set: `--record "$RECORD"` would train and keep
// nothing. Numbers, sizes and choices are checked where they are read.
void refuse_empty(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "N" || type == "SIZE" || !choices_of(option).empty()) return;
  const std::string what = type == "FILE"                          ? "name a file"
                           : type == "FOLDER" || type == "RUN_DIR" ? "name a folder"
                                                                   : "give a value";
  if (option.get_positional()) throw ConfigError(type + " is empty", what);
  const std::string name = option.get_name();
  throw ConfigError(name + " is empty", option.get_required() ? what : what + ", or leave " + name + " out");
}

// As other programs call what this command has.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"batch-size", "global-batch"}, {"batch", "global-batch"}, {"num-workers", "threads"}, {"workers", "threads"},
    {"num-threads", "threads"},     {"num-epochs", "epochs"},  {"dataset", "data"},        {"data-dir", "data"},
    {"data-path", "data"},          {"device", "devices"},     {"gpus", "devices"},        {"random-seed", "seed"},
    {"output-dir", "run-dir"},      {"output", "out"},         {"model", "recipe"},        {"arch", "recipe"},
    {"amp", "precision"},           {"weights", "record"},
};

// ": did you mean '--global-batch'?" for "batch-size".
std::string meant_option(const std::string& name, const std::vector<std::string>& known) {
  for (const auto& [other, own] : kOtherNames) {
    const std::string option = fmt::format("--{}", own);
    if (name == fmt::format("--{}", other) && std::ranges::find(known, option) != known.end())
      return fmt::format(": did you mean '{}'?", option);
  }
  return did_you_mean(name, known);
}

class Walk {
 public:
  Walk(const CLI::App& program, std::vector<std::string> arguments)
      : command_(&program), arguments_(std::move(arguments)) {}

  void run() {
    while (at_ < arguments_.size()) {
      const std::string& argument = arguments_[at_++];
      if (argument.size() > 1 && argument.starts_with('-')) {
        if (!take_option(argument)) return;
      } else {
        take_word(argument);
      }
    }
    require_all();
  }

 private:
  // False where it asks for help or the version: nothing else counts then.
  bool take_option(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const CLI::Option* option = option_named(*command_, name);
    if (option == nullptr) {
      throw ConfigError(
          fmt::format("unknown option '{}'{}", name, meant_option(name, names_of_options(*command_))),
          see_help(*command_));
    }
    if (option->get_name() == "--help" || option->get_name() == "--version") return false;
    if (!given_.insert(option).second) throw ConfigError(name + " is given twice", "give it once");
    const bool takes_value = option->get_items_expected_max() > 0;
    if (!takes_value && equals != std::string::npos) throw ConfigError(name + " takes no value", "give it alone");
    if (takes_value && (equals == std::string::npos ? take_value(name) : argument.substr(equals + 1)).empty()) {
      refuse_empty(*option);
    }
    return true;
  }

  const std::string& take_value(const std::string& name) {
    if (at_ == arguments_.size()) throw ConfigError(name + " needs a value", see_help(*command_));
    const std::string& value = arguments_[at_++];
    if (option_named(*command_, value.substr(0, value.find('='))) == nullptr) return value;
    throw ConfigError(fmt::format("{} needs a value, but {} follows it", name, value), see_help(*command_));
  }

  void take_word(const std::string& word) {
    const std::vector<std::string> known = names_of_commands(*command_);
    if (!known.empty()) {
      const CLI::App* next = subcommand(*command_, word);
      if (next != nullptr) {
        command_ = next;
        return;
      }
      throw ConfigError(
          fmt::format("unknown command '{}{}'{}", path_of(*command_), word, did_you_mean(word, known)),
          "there are: " + list(known));
    }
    const std::vector<const CLI::Option*> places = positionals();
    if (words_ < places.size()) {
      if (word.empty()) refuse_empty(*places[words_]);
      ++words_;
      return;
    }
    throw ConfigError(fmt::format("unexpected argument '{}'", word), see_help(*command_));
  }

  std::vector<const CLI::Option*> positionals() const {
    return command_->get_options([](const CLI::Option* option) { return option->get_positional(); });
  }

  void require_all() const {
    const std::vector<std::string> commands = names_of_commands(*command_);
    if (!commands.empty()) {
      throw ConfigError(fmt::format("headrace {}needs a command", path_of(*command_)),
                        "there are: " + list(commands));
    }
    for (const CLI::Option* option : command_->get_options()) {
      const bool missing = option->get_positional() ? words_ == 0 : !given_.contains(option);
      if (!option->get_required() || !missing) continue;
      const std::string name = option->get_positional() ? "" : option->get_name() + " ";
      throw ConfigError(fmt::format("headrace {}needs {}{}", path_of(*command_), name, option->get_type_name()),
                        option->get_description());
    }
  }

  const CLI::App* command_;
  std::vector<std::string> arguments_;
  std::size_t at_ = 0;
  std::size_t words_ = 0;  // arguments of the last command that belong to no option
  std::set<const CLI::Option*> given_;
};

// Commands that each worker may run: nothing is read, made or written twice.
constexpr std::array kForEachWorker = {"doctor", "report", "inspect", "verify"};
// Commands that all workers run together.
constexpr std::array kForAllWorkers = {"train", "evaluate", "predict"};

void add_to_command(CLI::App& command) {
  auto standalone = std::make_shared<bool>(false);
  command.add_flag(
      "--standalone", *standalone,
      "run alone, although a launcher (torchrun, mpirun, srun ...) started this process as one of several");
  const auto among = [&](const auto& names) {
    return std::ranges::find(names, command.get_name()) != names.end();
  };
  if (among(kForEachWorker) || among(kForAllWorkers)) return;
  const CLI::Option* world = command.get_option_no_throw("--world");
  // Before the command's own callback, once its options are known to be right.
  command.parse_complete_callback([standalone, world] {
    if (*standalone || (world != nullptr && world->count() > 0)) return;
    const std::string part = world == nullptr ? "" : "give --world and --first, or ";
    refuse_to_run_beside_others(std::getenv, part + "pass --standalone where each is to run alone");
  });
}

}  // namespace

void check_usage(const CLI::App& program, int argc, const char* const* argv) {
  Walk(program, {argv + 1, argv + argc}).run();
}

void add_standalone_option(CLI::App& program) {
  for (CLI::App* command : program.get_subcommands({})) {
    command->get_subcommands({}).empty() ? add_to_command(*command) : add_standalone_option(*command);
  }
}

}  // namespace headrace::tools
