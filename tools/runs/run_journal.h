// The files that a run of `headrace train` leaves in its folder for `headrace report`, besides its history.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/tools/runs/input_statistics.h"
#include "headrace/tools/runs/saturation_timeline.h"
#include "headrace/train/fit_options.h"

namespace headrace::tools {

// Writes kRunFile, kTimelineFile and kInputFile (run_folder.h). All exist during the run, so that a killed run has
// them, too: the description without its end, the statistics some seconds old.
class RunJournal {
 public:
  // `description`: the facts known at the run's start, to which the time and the version are added.
  RunJournal(std::filesystem::path folder, nlohmann::ordered_json description);

  // Attaches to the next training of this run. REQUIRES: the options do not outlive the journal.
  void attach(FitOptions& fit);
  // Adds a line that the report shows.
  void warn(const std::string& text);
  // `status`: "finished", "interrupted" or "failed", with the reason. REQUIRES: called once.
  void end(const std::string& status, const std::string& reason = {});

 private:
  void note(const FitControl& control);
  void write_run() const;
  void write_input(Durability durability);

  std::filesystem::path folder_;
  nlohmann::ordered_json run_;
  SaturationTimeline timeline_;
  InputStatistics input_;
  int trainings_ = 0;
  Stopwatch since_begin_, since_noted_, since_written_;
};

}  // namespace headrace::tools
