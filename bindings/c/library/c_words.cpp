#include "headrace/bindings/c/library/c_words.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <string_view>

#include "headrace/devices/base/reader_words.h"

namespace headrace::c {
namespace {

struct CWord {
  std::string_view name;  // in C++
  std::string_view word;  // empty: C has nothing of the kind, and advice that names it is left out
};

// Those that are not called as the last part of their name in C++.
constexpr std::array kWords = {
    CWord{"BuildOptions::fields", ""},
    CWord{"CheckpointOptions::folder", ""},
    CWord{"CheckpointOptions::keep", ""},
    CWord{"ColumnOptions::image", "path_column or image_keys"},
    CWord{"ColumnOptions::label", "label_column or label_keys"},
    CWord{"ColumnOptions::more", "columns"},
    CWord{"CompileOptions::metrics", ""},
    CWord{"CrossEntropyOptions::from_logits", ""},
    CWord{"Dataset::padded_batch()", "hr_dataset_padded_batch()"},
    CWord{"Dataset::shuffle_window()", "hr_shuffle_options.window"},
    CWord{"Dataset::size()", "hr_dataset_describe()"},
    CWord{"Dataset::steps_per_epoch()", "hr_dataset_describe()"},
    CWord{"Dataset::to_json()", "hr_dataset_to_json()"},
    CWord{"Dataset::unbatch()", "hr_dataset_unbatch()"},
    CWord{"FitOptions::checkpoints", ""},
    CWord{"FitOptions::epochs", ""},
    CWord{"FitOptions::resume", ""},
    CWord{"FitOptions::steps_per_epoch", ""},
    CWord{"LoaderOptions::trace", ""},
    CWord{"LoaderOptions::world", "world_replicas"},
    CWord{"OwnParts::losses", ""},
    CWord{"OwnParts::metrics", ""},
    CWord{"PlanOptions::allow_paths", "refuse_paths"},
    CWord{"StepOptions::accumulate", ""},
    CWord{"StrategyOptions::standalone", ""},
    CWord{"convert_dataset()", "hr_convert()"},
    CWord{"generator()", "hr_source_generator()"},
    CWord{"pulled()", "hr_source_pulled()"},
};

// Values that have a constant, or are another one in C.
struct CValue {
  std::string_view name, value, word;
};

constexpr std::array kValues = {
    CValue{"ColumnOptions::label_type", "class", "HR_LABEL_CLASS"},
    CValue{"ColumnOptions::label_type", "number", "HR_LABEL_NUMBER"},
    CValue{"ErrorPolicy::on_error", "skip", "HR_ON_ERROR_SKIP"},
    CValue{"LoaderOptions::convert", "auto", "HR_CONVERT_AUTO"},
    CValue{"LoaderOptions::resident", "auto", "HR_RESIDENT_AUTO"},
    CValue{"PlanOptions::allow_paths", "false", "true"},
};

std::string word_of(std::string_view name) {
  const auto found = std::ranges::find(kWords, name, &CWord::name);
  if (found != kWords.end()) return std::string(found->word);
  return std::string(name.substr(name.rfind(':') + 1));
}

std::string words_of_c(std::string_view name, std::string_view value) {
  const std::string word = word_of(name);
  if (word.empty() || value.empty()) return word;
  const auto found =
      std::ranges::find_if(kValues, [&](const CValue& one) { return one.name == name && one.value == value; });
  return word + " = " + std::string(found == kValues.end() ? value : found->word);
}

}  // namespace

void speak_c() {
  static std::once_flag once;
  std::call_once(once, [] { set_reader_words(words_of_c); });
}

}  // namespace headrace::c
