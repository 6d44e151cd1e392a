#include "headrace/tools/report/page.h"

#include <fmt/format.h>

#include "headrace/tools/report/json_values.h"
#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/page_style.h"
#include "headrace/tools/report/pipeline_picture.h"
#include "headrace/tools/report/run_charts.h"
#include "headrace/tools/report/run_summary.h"
#include "headrace/tools/report/run_tables.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

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
