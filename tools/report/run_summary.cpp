#include "headrace/tools/report/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "headrace/tools/report/json_values.h"
#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

const nlohmann::json kNothing;

const nlohmann::json& last_epoch(const TrainingLines& training) {
  return training.epochs.empty() ? kNothing : training.epochs.back();
}

// Returns the run's status, derived if the run has not recorded it.
std::string status_of(const RunReading& run) {
  const std::string status = text_at(run.run, "status");
  if (!status.empty()) return status;
  if (run.going_on) return "still running";
  if (!run.trainings.back().final.is_null()) return "finished";
  return run.run.is_null() ? "end not known" : "cut off";
}

std::string name_of(const RunReading& run) {
  const std::string recipe = text_at(run.run, "recipe");
  return recipe.empty() ? "a run of headrace train" : recipe;
}

std::string join(const nlohmann::json& list) {
  std::string text, last;
  for (const nlohmann::json& one : list) {
    const std::string name = one.is_string() ? one.get<std::string>() : one.dump();
    if (name == last) continue;
    if (!text.empty()) text += "; ";
    text += name;
    last = name;
  }
  return text;
}

std::string fact(const std::string& name, const std::string& value) {
  return value.empty() ? "" : "<dt>" + xml_text(name) + "</dt><dd>" + xml_text(value) + "</dd>\n";
}

// Returns a number as it was written; an empty text if there is none.
std::string exact(const nlohmann::json& object, const char* key) {
  const auto value = number_at(object, key);
  return value ? object[key].dump() : "";
}

std::string card(const std::string& name, const std::optional<std::string>& value) {
  return value ? "<div class=\"card\"><b>" + xml_text(*value) + "</b><span>" + xml_text(name) + "</span></div>\n"
               : "";
}

template <typename Text>
std::optional<std::string> shown(const std::optional<double>& value, Text text) {
  return value ? std::optional<std::string>(text(*value)) : std::nullopt;
}

std::string as_accuracy(double value) { return fmt::format("{:.2f} %", 100 * value); }
std::string as_loss(double value) { return fmt::format("{:.4f}", value); }

std::optional<double> highest(const TrainingLines& training, const char* key) {
  std::optional<double> best;
  for (const nlohmann::json& line : training.epochs) {
    const auto value = number_at(line, key);
    if (value && (!best || *value > *best)) best = value;
  }
  return best;
}

// Returns the mean of the epochs' shares, weighted by their duration.
std::optional<double> mean_share(const TrainingLines& training, const char* key) {
  double sum = 0, seconds = 0;
  for (const nlohmann::json& line : training.epochs) {
    const auto value = number_at(line, key), time = number_at(line, "seconds");
    if (!value || !time || *time <= 0) continue;
    sum += *value * *time;
    seconds += *time;
  }
  return seconds > 0 ? std::optional(sum / seconds) : std::nullopt;
}

}  // namespace

std::string headline_of(const RunReading& run) { return name_of(run) + ": " + status_of(run); }

std::string draw_heading(const RunReading& run) {
  std::string line;
  const auto add = [&line](const std::string& text) {
    if (!text.empty() && !line.empty()) line += " · ";
    line += text;
  };
  add(text_at(run.run, "devices"));
  add(text_at(run.run, "data"));
  add(text_at(run.run, "started"));
  std::string html = "<h1>" + xml_text(headline_of(run)) + "</h1>\n<p class=\"soft\">" + xml_text(line) + "</p>\n";
  const std::string reason = text_at(run.run, "reason");
  if (!reason.empty()) html += "<p><strong>" + xml_text(reason) + "</strong></p>\n";
  return html;
}

std::string draw_notes(const RunReading& run) {
  std::vector<std::string> notes = run.notes;
  if (text_at(run.run, "status").empty() && !run.run.is_null() && !run.going_on) {
    notes.emplace_back("the run did not write its end: it was killed, or the machine went down");
  }
  if (run.run.contains("warnings") && run.run["warnings"].is_array()) {
    for (const nlohmann::json& warning : run.run["warnings"]) {
      if (warning.is_string()) notes.push_back(warning.get<std::string>());
    }
  }
  if (notes.empty()) return "";
  std::string html = "<div class=\"notes\">\n";
  for (const std::string& note : notes) html += "<p>" + xml_text(note) + "</p>\n";
  return html + "</div>\n";
}

std::string draw_cards(const RunReading& run) {
  const TrainingLines& training = run.trainings.back();
  const nlohmann::json &end = training.final, &last = last_epoch(training);
  std::string cards =
      card("test accuracy", shown(number_at(end, "test_accuracy"), as_accuracy)) +
      card("test loss", shown(number_at(end, "test_loss"), as_loss)) +
      card("best validation accuracy", shown(highest(training, "val_accuracy"), as_accuracy)) +
      card("training loss at the end", shown(number_at(last, "loss"), as_loss)) +
      card("examples/s in the last epoch", shown(number_at(last, "examples_per_second"), short_number)) +
      card("input stall", shown(mean_share(training, "input_stall_fraction"), percent)) +
      card("training and test", shown(number_at(end, "train_seconds"), duration)) +
      card("epochs",
           training.epochs.empty() ? std::nullopt : std::optional(std::to_string(training.epochs.size())));
  return cards.empty() ? "" : "<div class=\"cards\">\n" + cards + "</div>\n";
}

std::string draw_facts(const RunReading& run) {
  const nlohmann::json& about = run.run;
  const nlohmann::json& end = run.trainings.back().final;
  const auto seconds = number_at(about, "seconds");
  return "<dl>\n" + fact("command", text_at(about, "command")) + fact("in folder", text_at(about, "directory")) +
         fact("recipe", text_at(about, "recipe")) + fact("data", text_at(about, "data")) +
         fact("devices", text_at(about, "devices")) +
         fact("that is", about.contains("device_descriptions") ? join(about["device_descriptions"]) : "") +
         fact("replicas", exact(about, "replicas")) + fact("precision", text_at(about, "precision")) +
         fact("global batch", exact(about, "global_batch")) + fact("seed", exact(about, "seed")) +
         fact("epochs planned", exact(about, "epochs")) + fact("Headrace", text_at(about, "headrace")) +
         fact("started", text_at(about, "started")) + fact("ended", text_at(about, "ended")) +
         fact("took", seconds ? duration(*seconds) : "") + fact("steps", exact(end, "steps")) +
         fact("weights' SHA-256", text_at(end, "weights_sha256")) + fact("run folder", run.folder.string()) +
         "</dl>\n";
}

}  // namespace headrace::tools
