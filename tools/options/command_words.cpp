// What messages call options whose reader typed a command.
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "headrace/devices/base/reader_words.h"
#include "headrace/tools/options/command_line.h"
#include "headrace/tools/options/options.h"

namespace headrace::tools {
namespace {

// Options whose name in the command is not flag_of() the last part of their C++ name.
constexpr ReaderWord kWords[] = {
    {"CheckpointOptions::best", "--checkpoint-best"},
    {"CheckpointOptions::best_mode", "--checkpoint-best-mode"},
    {"CheckpointOptions::every_steps", "--checkpoint-every"},
    {"CheckpointOptions::folder", "--checkpoint-dir"},
    {"CheckpointOptions::keep", "--checkpoint-keep"},
    {"ConvertOptions::shard_bytes", "--shard-size"},
    {"FitOptions::checkpoints", "--checkpoint-dir"},
    {"LoaderOptions::in_order", "--any-order"},
    {"LoaderOptions::reader_threads", "--readers"},
    {"SourceOptions::indexed", "--no-index"},
    {"StepOptions::nan", "--debug-nan"},
};

// The innermost command that was typed.
const CLI::App& command_typed_in(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string word_of_command(const CLI::App& program, std::string_view name, std::string_view value) {
  if (name == "Dataset::to_json()") return "headrace explain --write-plan";
  if (name == "Dataset::batch()") return R"(a stage {"batch": {"global_batch": N}})";  // of the file of --plan
  // Flags, which say that it is false.
  if (name == "LoaderOptions::in_order" || name == "SourceOptions::indexed") value = {};
  const std::string option = word_of(kWords, name, flag_of);
  if (command_typed_in(program).get_option_no_throw(option) == nullptr) return {};
  return value.empty() ? option : option + " " + std::string(value);
}

}  // namespace

void speak_command(const CLI::App& program) {
  set_reader_words(
      [&program](std::string_view name, std::string_view value) { return word_of_command(program, name, value); });
}

}  // namespace headrace::tools
