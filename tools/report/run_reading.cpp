#include "headrace/tools/report/run_reading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/tools/report/json_values.h"
#include "headrace/tools/runs/run_folder.h"

namespace headrace::tools {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 28;
constexpr std::size_t kMaxNamedLines = 5;

// Returns an empty text if there is no such file.
std::string read_text(const std::filesystem::path& file) {
  if (path_kind(file) != PathKind::kFile) return "";
  const std::vector<std::byte> bytes = read_whole_file(file, kMaxFileBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

nlohmann::json parse_object(std::string_view text) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_object() ? value : nlohmann::json();
}

// The lines of a file that are objects as `is_wanted` says; the others are told of.
class ObjectLines {
 public:
  ObjectLines(const std::filesystem::path& file, bool (*is_wanted)(const nlohmann::json&)) {
    const std::string text = read_text(file);
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      ++number;
      nlohmann::json object = parse_object(std::string_view(text).substr(at, end - at));
      if (!object.is_null() && is_wanted(object)) {
        objects.push_back(std::move(object));
      } else if (end > at) {
        damaged_.push_back(number);
      }
      at = end + 1;
    }
    name_ = file.string();
  }

  // Returns "history.jsonl: lines 3 and 7 are damaged and left out"; empty if all are sound.
  std::string complaint() const {
    if (damaged_.empty()) return "";
    const auto named = std::span(damaged_).first(std::min(damaged_.size(), kMaxNamedLines));
    std::string lines = fmt::format("{}", fmt::join(named, ", "));
    if (damaged_.size() > kMaxNamedLines) lines += fmt::format(" and {} more", damaged_.size() - kMaxNamedLines);
    const bool one = damaged_.size() == 1;
    return fmt::format("{}: {} {} {} damaged and left out", name_, one ? "line" : "lines", lines,
                       one ? "is" : "are");
  }
  bool all_damaged() const { return objects.empty() && !damaged_.empty(); }
  std::size_t first_damaged() const { return damaged_.front(); }

  std::vector<nlohmann::json> objects;

 private:
  std::vector<std::size_t> damaged_;  // numbers of lines, from 1
  std::string name_;
};

bool is_final_line(const nlohmann::json& line) { return line.contains("final"); }

bool is_history_line(const nlohmann::json& line) {
  return is_final_line(line) || number_at(line, "epoch").has_value();
}

bool is_timeline_line(const nlohmann::json& line) {
  const auto begin = number_at(line, "begin_seconds"), end = number_at(line, "end_seconds");
  return begin && end && *begin >= 0 && *end >= *begin;
}

// A training ends with its final line, or where epochs begin anew.
std::vector<TrainingLines> divide(std::vector<nlohmann::json> lines) {
  std::vector<TrainingLines> trainings(1);
  for (nlohmann::json& line : lines) {
    TrainingLines& last = trainings.back();
    const bool repeats = !last.epochs.empty() && !is_final_line(line) &&
                         *number_at(line, "epoch") <= *number_at(last.epochs.back(), "epoch");
    if (repeats || !last.final.is_null()) trainings.emplace_back();
    if (is_final_line(line)) {
      trainings.back().final = std::move(line);
    } else {
      trainings.back().epochs.push_back(std::move(line));
    }
  }
  return trainings;
}

std::vector<nlohmann::json> last_training(std::vector<nlohmann::json> timeline) {
  if (timeline.empty()) return timeline;
  const double number = number_at(timeline.back(), "training").value_or(1);
  std::erase_if(timeline,
                [&](const nlohmann::json& line) { return number_at(line, "training").value_or(1) != number; });
  return timeline;
}

// Notes the missing files and their purpose.
void note_missing(RunReading& run) {
  const auto missing = [&](const char* name, const char* what) {
    if (path_kind(run.folder / name) == PathKind::kFile) return;
    run.notes.push_back(fmt::format("{} is missing: {}", name, what));
  };
  missing(kHistoryFile, "there are no epochs to show");
  missing(kRunFile, "what was run, and how it ended, is not known");
  missing(kTimelineFile, "how busy the devices were within an epoch is not known");
  missing(kInputFile, run.going_on
                          ? "the input engine's statistics come after the first seconds"
                          : "what the input engine did is not known; an epoch's second step begins to tell");
  missing(kModelFile, "the net is not known");
  missing(kPlanFile, "the plan of the input is not known");
}

void note_damage(RunReading& run, const char* name, const nlohmann::json& object) {
  if (!object.is_null() || path_kind(run.folder / name) != PathKind::kFile) return;
  run.notes.push_back(fmt::format("{}: this is no JSON object; it is left out", (run.folder / name).string()));
}

}  // namespace

nlohmann::json read_object(const std::filesystem::path& file) { return parse_object(read_text(file)); }

RunReading read_run(const std::filesystem::path& folder) {
  const ObjectLines history(folder / kHistoryFile, is_history_line);
  if (history.all_damaged()) {
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("line {} is no line of a history", history.first_damaged()),
                    {.source = (folder / kHistoryFile).string()},
                    "name a folder that headrace train --run-dir wrote, or restore the file");
  }
  const ObjectLines timeline(folder / kTimelineFile, is_timeline_line);
  RunReading run{.folder = folder,
                 .run = read_object(folder / kRunFile),
                 .input = read_object(folder / kInputFile),
                 .trainings = divide(history.objects),
                 .timeline = last_training(timeline.objects),
                 .model = read_text(folder / kModelFile),
                 .plan = read_text(folder / kPlanFile),
                 .going_on = is_being_written(folder / kTimelineFile),
                 .notes = {}};
  note_missing(run);
  note_damage(run, kRunFile, run.run);
  note_damage(run, kInputFile, run.input);
  for (const ObjectLines* lines : {&history, &timeline}) {
    if (const std::string complaint = lines->complaint(); !complaint.empty()) run.notes.push_back(complaint);
  }
  return run;
}

}  // namespace headrace::tools
