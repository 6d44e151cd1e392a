#include "headrace/tools/runs/run_journal.h"

#include <fmt/chrono.h>

#include <ctime>

#include "headrace/devices/base/file.h"
#include "headrace/tools/runs/run_folder.h"

namespace headrace::tools {
namespace {

constexpr double kSecondsBetweenNotes = 1, kSecondsBetweenFiles = 10;

// "2026-11-23T18:02:16Z"
std::string time_now() { return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))); }

std::string indented(const nlohmann::ordered_json& object) {
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

RunJournal::RunJournal(std::filesystem::path folder, nlohmann::ordered_json description)
    : folder_(std::move(folder)), run_(std::move(description)), timeline_(folder_ / kTimelineFile) {
  run_["headrace"] = HEADRACE_VERSION;
  run_["started"] = time_now();
  run_["warnings"] = nlohmann::ordered_json::array();
  write_run();
}

void RunJournal::attach(FitOptions& fit) {
  const int number = ++trainings_;
  fit.callbacks.push_back({.on_train_begin =
                               [this, number](FitControl&) {
                                 timeline_.begin_training(number);
                                 input_ = {};
                               },
                           .on_step =
                               [this](const StepReport& report, FitControl& control) {
                                 timeline_.step(report);
                                 note(control);
                               },
                           .on_epoch_end =
                               [this](const EpochReport& report, FitControl& control) {
                                 timeline_.end_epoch(report);
                                 input_.end_epoch(control.input_stats());
                               }});
}

void RunJournal::note(const FitControl& control) {
  if (since_noted_.seconds() < kSecondsBetweenNotes) return;
  since_noted_.restart();
  input_.note(control.input_stats());
  if (since_written_.seconds() < kSecondsBetweenFiles) return;
  since_written_.restart();
  write_input(Durability::kLater);
}

void RunJournal::warn(const std::string& text) { run_["warnings"].push_back(text); }

void RunJournal::end(const std::string& status, const std::string& reason) {
  timeline_.finish();
  write_input(Durability::kNow);
  run_["ended"] = time_now();
  run_["seconds"] = since_begin_.seconds();
  run_["status"] = status;
  if (!reason.empty()) run_["reason"] = reason;
  write_run();
}

void RunJournal::write_run() const { write_file_atomically(folder_ / kRunFile, indented(run_)); }

void RunJournal::write_input(Durability durability) {
  const nlohmann::ordered_json input = input_.to_json();
  if (input.is_null()) return;
  const std::string text = indented(input);
  write_file_atomically(folder_ / kInputFile, std::as_bytes(std::span(text)), durability);
}

}  // namespace headrace::tools
