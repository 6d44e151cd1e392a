#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "headrace/tools/options/command_line.h"
#include "headrace/tools/options/options.h"

namespace headrace::tools {
namespace {

constexpr std::size_t kMaxWidth = 100, kMinWidth = 60, kNameColumn = 26;

constexpr NamedText kExitStatuses[] = {
    {"0", "success"},
    {"1", "the run failed: data that cannot be read, a loss that is no number, a device that fails"},
    {"2", "wrong usage"},
    {"75", "another worker was lost, is late or was stopped: start all again, with --resume"},
    {"129, 130, 141, 143",
     "a signal ended it: a closed terminal, Ctrl-C, nobody reads its output any more, a request to terminate"},
};

constexpr NamedText kVariables[] = {
    {"HEADRACE_DEVICES", "the devices that \"auto\" means: cpu:4, cuda:0,1"},
    {"HEADRACE_CPU_THREADS", "threads on which a CPU replica computes; default its share of the cores"},
    {"HEADRACE_COORDINATOR", "HOST:PORT where worker 0 meets the others, if the launcher does not say"},
    {"HEADRACE_TRANSPORT", "gloo or mpi: what carries values between workers; default mpi under its launchers"},
    {"HEADRACE_WORKERS_DUMP",
     "folder for each worker's last calls when the training fails; default the temporary one"},
    {"HEADRACE_WORLD_SECRET", "what all workers of a world know, and nobody else: 16 characters or more"},
    {"HEADRACE_WORLD_SECRET_FILE", "file that holds it"},
    {"HEADRACE_WORLD_LISTEN", "address at which worker 0 listens"},
    {"HEADRACE_WORLD_TLS_CA", "file of the authority of all workers' certificates, for calls to worker 0"},
    {"HEADRACE_WORLD_TLS_CERTIFICATE", "file of this worker's certificate"},
    {"HEADRACE_WORLD_TLS_KEY", "file of its key"},
    {"HEADRACE_CUDA_MATH", "default, tuned or fastest: how a convolution's plan on a GPU is chosen"},
    {"HEADRACE_FETCH_CACHE", "folder of a local disk that keeps what is fetched of URLs, as --fetch-cache does"},
    {"HEADRACE_FETCH_BUDGET", "the maximum of its files: 500G"},
    {"HEADRACE_INDEX_FOLDER",
     "where indexes of remote and large files, and tables that processes share, are kept; off: nowhere; default "
     "below the user's cache "
     "folder"},
    {"HEADRACE_CUDA_PLAN_FOLDER", "where tuned plans are kept; default below the user's cache folder"},
    {"HEADRACE_CUDA_PLANS", "1: print each plan that is chosen"},
    {"HEADRACE_CUDA_POLL_US", "microseconds for which a wait for a GPU polls before it blocks; default 50"},
    {"HEADRACE_COLLECTIVE_TIMEOUT", "seconds that replicas wait for each other on GPUs; default 30"},
    {"HEADRACE_CUDA_MODULE", "file of the CUDA module, if it is not beside the libraries"},
    {"HEADRACE_CUDA_MATH_MODULE", "file of the module with its mathematics"},
    {"HEADRACE_WORKERS_MODULE", "file of the module for several workers"},
    {"HEADRACE_MPI_MODULE", "file of the module for MPI"},
};

// Returns "; not with --data, --split or --cache"; empty if there are none.
std::string others(const std::string& what, const std::set<CLI::Option*>& options, const std::string& last) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  if (names.empty()) return {};
  std::ranges::sort(names);
  const std::string end = names.back();
  names.pop_back();
  return what + fmt::format("{}", fmt::join(names, ", ")) + (names.empty() ? "" : last) + end;
}

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
  std::set<CLI::Option*> excluded = option.get_excludes();
  std::erase_if(excluded, [&](const CLI::Option* other) {  // which says it of the whole group
    return other->get_excludes().size() > option.get_excludes().size();
  });
  return what + others("; only with ", option.get_needs(), " and ") + others("; not with ", excluded, " or ");
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

std::span<const NamedText> exit_statuses() { return kExitStatuses; }
std::span<const NamedText> environment_variables() { return kVariables; }

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

std::string HelpText::make_footer(const CLI::App* command) const {
  if (command->get_parent() != nullptr) return {};
  std::string text = "\nExit status:\n";
  for (const NamedText& one : kExitStatuses) text += line(std::string("  ") + one.name, one.text);
  text += "\nEnvironment:\n";
  for (const NamedText& one : kVariables) text += line(std::string("  ") + one.name, one.text);
  return text;
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
