#include "headrace/tools/options/command_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>

#include "headrace/devices/base/reader_words.h"

namespace headrace::tools {
namespace {

// Words whose name in the command is not the last part of their C++ name.
constexpr ReaderWord kWords[] = {
    {"ArchiveOptions::memory_limit", ""},
    {"ArrowOptions::memory_limit", ""},
    {"BatchOptions::global_batch", "--global-batch"},
    {"BuildOptions::fields", ""},
    {"Callback::every_steps", ""},
    {"CheckpointOptions::best", "--checkpoint-best"},
    {"CheckpointOptions::best_mode", "--checkpoint-best-mode"},
    {"CheckpointOptions::every_steps", "--checkpoint-every"},
    {"CheckpointOptions::folder", "--checkpoint-dir"},
    {"CheckpointOptions::keep", "--checkpoint-keep"},
    {"ColumnOptions::image", "--image-column"},
    {"ColumnOptions::label", "--label-column"},
    {"ColumnOptions::more", "--columns"},
    {"CompileOptions::metrics", ""},
    {"CrossEntropyOptions::from_logits", ""},
    {"Dataset::bucket_by_length()", ""},
    {"Dataset::padded_batch()", ""},
    {"Dataset::shuffle_window()", ""},
    {"Dataset::size()", ""},
    {"Dataset::steps_per_epoch()", ""},
    {"Dataset::unbatch()", ""},
    {"EarlyStoppingOptions::mode", ""},
    {"EvaluateOptions::averaged_weights", ""},
    {"EvaluateOptions::steps", ""},
    {"EvaluateOptions::views", ""},
    {"FitOptions::callbacks", ""},
    {"FitOptions::checkpoints", "--checkpoint-dir"},
    {"FitOptions::class_weight", ""},
    {"FitOptions::validate_averaged", ""},
    {"FitOptions::validation", ""},
    {"HostMetricOptions::better", ""},
    {"LoaderOptions::converted", ""},
    {"LoaderOptions::even_shares", ""},
    {"LoaderOptions::in_order", "--any-order"},
    {"LoaderOptions::memory_budget_bytes", "--memory-budget"},
    {"LoaderOptions::pinned_budget_bytes", "--pinned-budget"},
    {"LoaderOptions::reader_limit", ""},
    {"LoaderOptions::reader_threads", "--readers"},
    {"LoaderOptions::start", ""},
    {"LoaderOptions::trace_spans", ""},
    {"Loss::for_task()", ""},
    {"CustomParts::layers", ""},
    {"CustomParts::losses", ""},
    {"CustomParts::metrics", ""},
    {"PlanOptions::allow_paths", ""},
    {"PlanParts::filters", ""},
    {"PlanParts::operations", ""},
    {"PlanParts::sources", ""},
    {"PullOptions::memory_limit", ""},
    {"RecordFilter::max_failures", ""},
    {"ReduceLrOnPlateauOptions::mode", ""},
    {"StepOptions::nan", "--debug-nan"},
    {"StrategyOptions::workers", ""},
    {"TfRecordOptions::memory_limit", ""},
    {"TrainerOptions::first_step", ""},
    {"ZipOptions::strict", ""},
    {"ZipOptions::suffixes", ""},
    {"convert_dataset()", ""},
    {"generator()", ""},
    {"pulled()", ""},
};

// "--label-type"
std::string usual_option(std::string_view last) {
  std::string option = "--" + std::string(last);
  std::ranges::replace(option, '_', '-');
  return option;
}

// The innermost command that was typed.
const CLI::App& typed_command(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string word_of_command(const CLI::App& program, std::string_view name, std::string_view value) {
  if (name == "Dataset::to_json()") return "headrace explain --write-plan";
  if (name == "Dataset::batch()") return R"(a stage {"batch": {"global_batch": N}})";  // of the file of --plan
  if (name == "LoaderOptions::in_order") value = {};  // a flag, which says that it is false
  const std::string option = word_of(kWords, name, usual_option);
  if (option.empty() || typed_command(program).get_option_no_throw(option) == nullptr) return {};
  return value.empty() ? option : option + " " + std::string(value);
}

}  // namespace

void speak_command(const CLI::App& program) {
  set_reader_words(
      [&program](std::string_view name, std::string_view value) { return word_of_command(program, name, value); });
}

}  // namespace headrace::tools
