#include "headrace/bindings/c/library/c_words.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>

#include "headrace/devices/base/reader_words.h"

namespace headrace::c {
namespace {

// Words whose C name is not the last part of their C++ name.
constexpr ReaderWord kWords[] = {
    {"ColumnOptions::image_column", "path_column or image_keys"},
    {"ColumnOptions::label_column", "label_column or label_keys"},
    {"ColumnOptions::columns", "columns"},
    {"Dataset::bucket_by_length()", "bucket_by_length"},
    {"Dataset::padded_batch()", "padded_batch"},
    {"Dataset::shuffle_window()", "shuffle_window"},
    {"Dataset::size()", "hr_dataset_describe()"},
    {"Dataset::steps_per_epoch()", "hr_dataset_describe()"},
    {"Dataset::to_json()", "hr_dataset_to_json()"},
    {"Dataset::unbatch()", "unbatch"},
    {"LoaderOptions::trace", ""},
    {"LoaderOptions::world", "world_replicas"},
    {"PlanOptions::allow_paths", "refuse_paths"},
    {"convert_dataset()", "hr_convert()"},
    {"generator()", "hr_source_generator()"},
    {"pulled()", "hr_source_pulled()"},
};

// Values that have a constant, or differ, in C.
struct CValue {
  std::string_view name, value, word;
};

constexpr CValue kValues[] = {
    {"ColumnOptions::label_type", "class", "HR_LABEL_CLASS"},
    {"ColumnOptions::label_type", "number", "HR_LABEL_NUMBER"},
    {"ErrorPolicy::on_error", "skip", "HR_ON_ERROR_SKIP"},
    {"LoaderOptions::convert", "auto", "HR_CONVERT_AUTO"},
    {"LoaderOptions::resident", "auto", "HR_RESIDENT_AUTO"},
    {"PlanOptions::allow_paths", "false", "true"},
};

// Beginnings of the trainer's names, which have no word: there is no trainer in C.
constexpr std::string_view kOfTheTrainer[] = {
    "BuildOptions::",
    "Callback::",
    "CheckpointOptions::",
    "CompileOptions::",
    "CrossEntropyOptions::",
    "EarlyStoppingOptions::",
    "EvaluateOptions::",
    "FitOptions::",
    "HostMetricOptions::",
    "Loss::",
    "OwnParts::",
    "ReduceLrOnPlateauOptions::",
    "StepOptions::",
    "StrategyOptions::",
    "TrainerOptions::",
};

std::string words_of_c(std::string_view name, std::string_view value) {
  if (std::ranges::any_of(kOfTheTrainer, [&](std::string_view one) { return name.starts_with(one); })) return {};
  const std::string word = word_of(kWords, name, [](std::string_view last) { return std::string(last); });
  if (word.empty() || value.empty()) return word;
  const auto found =
      std::ranges::find_if(kValues, [&](const CValue& one) { return one.name == name && one.value == value; });
  return word + " = " + std::string(found == std::end(kValues) ? value : found->word);
}

}  // namespace

void speak_c() {
  static std::once_flag once;
  std::call_once(once, [] { set_reader_words(words_of_c); });
}

}  // namespace headrace::c
