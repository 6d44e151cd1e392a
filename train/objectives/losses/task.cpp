// What results are: the words for it, and how a loss is told.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "headrace/devices/base/error.h"
#include "headrace/train/losses.h"

namespace headrace {
namespace {

constexpr std::array<const char*, 4> kTaskWords{"regression", "binary", "multi_label",
                                                "categorical"};  // in the order of Task

}  // namespace

std::string to_text(Task task) { return kTaskWords.at(static_cast<std::size_t>(task)); }

std::string to_text(const ResultTask& task) {
  if (task.task == Task::kRegression) return to_text(task.task);
  return to_text(task.task) + (task.from_logits ? ", from logits" : ", from probabilities");
}

Task task_named(const std::string& word) {
  const auto found = std::ranges::find(kTaskWords, word);
  if (found != kTaskWords.end()) return static_cast<Task>(found - kTaskWords.begin());
  throw ConfigError(fmt::format("there is no task '{}'", word),
                    fmt::format("there are {}", fmt::join(kTaskWords, ", ")));
}

Loss Loss::for_task(Task task, std::optional<bool> from_logits) const {
  Loss loss = *this;
  for (LossTerm& term : loss.terms) {
    term.task = task;
    term.from_logits = from_logits;
  }
  return loss;
}

}  // namespace headrace
