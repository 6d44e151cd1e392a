#include "headrace/pipeline/sources/split_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace headrace {
namespace {

constexpr std::array<std::pair<std::string_view, Part>, 14> kWords{{{"train", Part::kTrain},
                                                                    {"training", Part::kTrain},
                                                                    {"trainset", Part::kTrain},
                                                                    {"trainval", Part::kTrain},
                                                                    {"test", Part::kTest},
                                                                    {"testing", Part::kTest},
                                                                    {"testset", Part::kTest},
                                                                    {"val", Part::kValidation},
                                                                    {"valid", Part::kValidation},
                                                                    {"validation", Part::kValidation},
                                                                    {"valset", Part::kValidation},
                                                                    {"dev", Part::kValidation},
                                                                    {"eval", Part::kValidation},
                                                                    {"evaluation", Part::kValidation}}};
constexpr std::array<std::string_view, 5> kHidden{"__macosx", "@eadir", "$recycle.bin",
                                                  "system volume information", "lost+found"};

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

std::string lower_case(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Returns the end of the word that begins at `at`: "train" of "trainA" and "trainImages", "X" of "XTrain".
std::size_t end_of_word(std::string_view name, std::size_t at) {
  std::size_t end = at;
  while (end < name.size() && (is_upper(name[end]) || is_lower(name[end]))) {
    const bool turns = end > at && is_upper(name[end]) &&
                       (is_lower(name[end - 1]) || (end + 1 < name.size() && is_lower(name[end + 1])));
    if (turns) break;
    ++end;
  }
  return end;
}

}  // namespace

const char* to_string(Part part) noexcept {
  return part == Part::kTrain        ? "train"
         : part == Part::kTest       ? "test"
         : part == Part::kValidation ? "val"
                                     : "unused";
}

std::optional<Part> part_called(std::string_view name) {
  constexpr std::size_t kLongest = 10;
  if (name.size() > kLongest) return std::nullopt;
  const std::string lower = lower_case(name);
  const auto found = std::ranges::find(kWords, lower, &std::pair<std::string_view, Part>::first);
  return found == kWords.end() ? std::nullopt : std::optional(found->second);
}

std::optional<PartInName> part_in(std::string_view name) {
  std::optional<PartInName> found;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::max(end_of_word(name, at), at + 1);
    const std::string_view word = name.substr(at, end - at);
    if (const std::optional<Part> part = part_called(word)) {
      if (found && found->part != *part) return PartInName{.part = Part::kUnused, .rest = {}};
      found = {.part = *part, .rest = lower_case(name.substr(0, at)) + lower_case(name.substr(end))};
    }
    at = end;
  }
  return found;
}

bool is_hidden_name(std::string_view name) {
  if (name.starts_with('.')) return true;
  const auto has_length = [&](std::string_view hidden) { return hidden.size() == name.size(); };
  return std::ranges::any_of(kHidden, has_length) && std::ranges::find(kHidden, lower_case(name)) != kHidden.end();
}

std::string_view hidden_folder_of(std::string_view path) {
  for (std::size_t at = 0, slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', at)) {
    if (is_hidden_name(path.substr(at, slash - at))) return path.substr(at, slash - at);
    at = slash + 1;
  }
  return {};
}

}  // namespace headrace
