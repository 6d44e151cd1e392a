#include "headrace/tools/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "headrace/tools/report/json_values.h"
#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/page_style.h"
#include "headrace/tools/report/pipeline_picture.h"
#include "headrace/tools/report/run_charts.h"
#include "headrace/tools/report/run_reading.h"
#include "headrace/tools/report/run_tables.h"
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

// Returns "mnist-mlp: finished".
std::string headline_of(const RunReading& run) { return name_of(run) + ": " + status_of(run); }

// Draws the title, the devices and data, and how the run ended.
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

// Draws missing and damaged files and warnings; empty if there are none.
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

// Draws the final figures.
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

// Draws what was run, and on what.
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

// Returns an empty text if there is no content.
std::string section(const std::string& title, const std::string& content) {
  if (content.empty()) return "";
  return "<section>\n<h2>" + xml_text(title) + "</h2>\n" + content + "</section>\n";
}

std::string details(const std::string& title, const std::string& text) {
  if (text.empty()) return "";
  return "<details><summary>" + xml_text(title) + "</summary><pre>" + xml_text(text) + "</pre></details>\n";
}

std::string paragraph(const std::string& text) { return text.empty() ? "" : "<p>" + xml_text(text) + "</p>\n"; }

std::string draw_saturation(const RunReading& run) {
  const std::string charts = draw_timeline(run.timeline);
  if (charts.empty()) return "";
  return paragraph(standstill_sentence(run.timeline)) +
         paragraph(
             "Input stall: no batch was ready. Copies: the batch was on its way to the device. Idle: the host had "
             "not submitted the step. Replicas: waiting to sum gradients. Gaps are validations.") +
         charts;
}

std::string engine_summary(const nlohmann::json& input) {
  const std::string summary = text_at(input, "summary");
  if (summary.empty()) return "";
  return paragraph("As the engine counts: " + summary + ".") +
         paragraph(
             "Consumer wait is not input stall: it is the time that the training's thread spent asking the engine "
             "for "
             "batches, which it does ahead of the devices. They stall only where it comes back too late for "
             "them.");
}

std::string draw_input(const nlohmann::json& input) {
  const std::string picture = draw_pipeline(input);
  if (picture.empty()) return "";
  const nlohmann::json verdict = input.value("verdict", nlohmann::json());
  std::string what_ifs;
  if (verdict.contains("what_ifs") && verdict["what_ifs"].is_array()) {
    for (const nlohmann::json& what_if : verdict["what_ifs"]) {
      if (const std::string text = text_at(what_if, "sentence"); !text.empty()) {
        what_ifs += "<li>" + xml_text(text) + "</li>\n";
      }
    }
  }
  if (!what_ifs.empty()) what_ifs = "<details><summary>What if</summary><ul>\n" + what_ifs + "</ul></details>\n";
  const std::string sentence = text_at(verdict, "sentence");
  return (sentence.empty() ? "" : "<p><strong>" + xml_text(sentence) + "</strong></p>\n") +
         paragraph(
             "Each box: the rate that the stage could reach if its threads did nothing else, and how much of "
             "their "
             "time it takes.") +
         picture + engine_summary(input) + what_ifs;
}

}  // namespace

std::string make_page(const RunReading& run, const std::string& others) {
  const TrainingLines& training = run.trainings.back();
  const std::string trainings = training_table(run);
  return std::string(kReportBegin) +
         "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         xml_text(headline_of(run)) + "</title>\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n" +
         draw_heading(run) + draw_notes(run) + draw_cards(run) +
         section("All trainings of this run",
                 trainings.empty() ? "" : trainings + paragraph("What follows is of the last one.")) +
         section("Curves", draw_curves(training)) + section("Saturation", draw_saturation(run)) +
         section("Pipeline", draw_input(run.input)) + section("Epochs", epoch_table(training)) +
         section("Workers in the last epoch", worker_table(training)) +
         section("The run", draw_facts(run) + paragraph(others)) + details("Model", run.model) +
         details("Plan of the input", run.plan) + "</body>\n</html>\n";
}

}  // namespace headrace::tools
