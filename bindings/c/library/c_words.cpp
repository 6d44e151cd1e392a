// The C names of functions and options in messages.
#include <mutex>
#include <string>
#include <string_view>

#include "headrace/bindings/c/library/errors.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace::c {
namespace {

// Words whose C name is not the last part of their C++ name: functions, parts, and options that JSON nests.
constexpr ReaderWord kWords[] = {
    {"Dataset::bucket_by_length()", "bucket_by_length"},
    {"Dataset::padded_batch()", "padded_batch"},
    {"Dataset::shuffle_window()", "shuffle_window"},
    {"Dataset::size()", "hr_dataset_describe()"},
    {"Dataset::steps_per_epoch()", "hr_dataset_describe()"},
    {"Dataset::to_json()", "hr_dataset_to_json()"},
    {"Dataset::unbatch()", "unbatch"},
    {"FitOptions::steps_per_epoch", ""},  // there is no trainer in C
    {"LoaderOptions::trace", ""},
    {"LoaderOptions::world", "world_replicas"},
    {"PlanParts::filters", "hr_parts"},
    {"PlanParts::operations", "hr_parts"},
    {"PlanParts::sources", "hr_parts"},
    {"convert_dataset()", "hr_convert()"},
    {"generator()", "hr_dataset_from_calls()"},
    {"pulled()", "hr_dataset_from_calls()"},
};

std::string words_of_c(std::string_view name, std::string_view value) {
  const std::string word = word_of(kWords, name, [](std::string_view last) { return std::string(last); });
  return word.empty() || value.empty() ? word : word + " = " + std::string(value);
}

}  // namespace

void speak_c() {
  static std::once_flag once;
  std::call_once(once, [] { set_reader_words(words_of_c); });
}

}  // namespace headrace::c
