#include "headrace/tools/options/command_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "headrace/devices/base/reader_words.h"

namespace headrace::tools {
namespace {

struct OptionWord {
  std::string_view name;    // in C++
  std::string_view option;  // empty: no command has it, and advice that names it is left out
};

constexpr std::array kWords = {
    OptionWord{"ArchiveOptions::memory_limit", ""},
    OptionWord{"BatchOptions::global", "--global-batch"},
    OptionWord{"BuildOptions::fields", ""},
    OptionWord{"CheckpointOptions::folder", "--checkpoint-dir"},
    OptionWord{"CheckpointOptions::keep", "--checkpoint-keep"},
    OptionWord{"CompileOptions::metrics", ""},
    OptionWord{"CrossEntropyOptions::from_logits", ""},
    OptionWord{"ColumnOptions::image", "--image-column"},
    OptionWord{"ColumnOptions::label", "--label-column"},
    OptionWord{"ColumnOptions::label_type", "--label-type"},
    OptionWord{"ColumnOptions::more", "--columns"},
    OptionWord{"Dataset::padded_batch()", ""},
    OptionWord{"Dataset::shuffle_window()", ""},
    OptionWord{"Dataset::size()", ""},
    OptionWord{"Dataset::steps_per_epoch()", ""},
    OptionWord{"Dataset::unbatch()", ""},
    OptionWord{"ErrorPolicy::max_bad_share", "--max-bad-share"},
    OptionWord{"ErrorPolicy::on_error", "--on-error"},
    OptionWord{"ErrorPolicy::quarantine", "--quarantine"},
    OptionWord{"FitOptions::checkpoints", "--checkpoint-dir"},
    OptionWord{"FitOptions::epochs", "--epochs"},
    OptionWord{"FitOptions::resume", "--resume"},
    OptionWord{"FitOptions::steps_per_epoch", "--steps-per-epoch"},
    OptionWord{"LayoutOptions::classes_at", "--classes-at"},
    OptionWord{"LayoutOptions::test_folder", "--test-folder"},
    OptionWord{"LayoutOptions::train_folder", "--train-folder"},
    OptionWord{"LoaderOptions::convert", "--convert"},
    OptionWord{"LoaderOptions::converted", ""},
    OptionWord{"LoaderOptions::cpu_budget", "--cpu-budget"},
    OptionWord{"LoaderOptions::epochs", "--epochs"},
    OptionWord{"LoaderOptions::headspace", "--headspace"},
    OptionWord{"LoaderOptions::memory_budget_bytes", "--memory-budget"},
    OptionWord{"LoaderOptions::pinned_budget_bytes", "--pinned-budget"},
    OptionWord{"LoaderOptions::prefetch", "--prefetch"},
    OptionWord{"LoaderOptions::reader_limit", ""},
    OptionWord{"LoaderOptions::reader_threads", "--readers"},
    OptionWord{"LoaderOptions::resident", "--resident"},
    OptionWord{"LoaderOptions::start", ""},
    OptionWord{"LoaderOptions::threads", "--threads"},
    OptionWord{"LoaderOptions::trace", "--trace"},
    OptionWord{"LoaderOptions::trace_spans", ""},
    OptionWord{"LoaderOptions::world", "--world"},
    OptionWord{"OwnParts::losses", ""},
    OptionWord{"OwnParts::metrics", ""},
    OptionWord{"PipelineOptions::apply_orientation", "--apply-orientation"},
    OptionWord{"PipelineOptions::cache", "--cache"},
    OptionWord{"PipelineOptions::data", "--data"},
    OptionWord{"PipelineOptions::split", "--split"},
    OptionWord{"PlanOptions::allow_paths", ""},
    OptionWord{"PlanParts::filters", ""},
    OptionWord{"PlanParts::operations", ""},
    OptionWord{"PlanParts::sources", ""},
    OptionWord{"PullOptions::memory_limit", ""},
    OptionWord{"RecipeOptions::apply_orientation", "--apply-orientation"},
    OptionWord{"RecipeOptions::data", "--data"},
    OptionWord{"RecordFilter::max_failures", ""},
    OptionWord{"StepOptions::accumulate", "--accumulate"},
    OptionWord{"StrategyOptions::standalone", "--standalone"},
    OptionWord{"TfRecordOptions::memory_limit", ""},
    OptionWord{"ZipOptions::suffixes", ""},
    OptionWord{"convert_dataset()", ""},
    OptionWord{"generator()", ""},
    OptionWord{"pulled()", ""},
    OptionWord{"split", "--split"},
};

// The innermost command that was typed.
const CLI::App& typed_command(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string word_of(const CLI::App& program, std::string_view name, std::string_view value) {
  if (name == "Dataset::to_json()") return "headrace explain --write-plan";
  const auto found = std::ranges::find(kWords, name, &OptionWord::name);
  if (found == kWords.end() || found->option.empty()) return {};
  const std::string option(found->option);
  if (typed_command(program).get_option_no_throw(option) == nullptr) return {};
  return value.empty() ? option : option + " " + std::string(value);
}

}  // namespace

void speak_command(const CLI::App& program) {
  set_reader_words(
      [&program](std::string_view name, std::string_view value) { return word_of(program, name, value); });
}

}  // namespace headrace::tools
