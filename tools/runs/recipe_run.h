// A recipe from its prepared data to its test accuracy, and the time that takes.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/recipes/recipe.h"
#include "headrace/tools/runs/run_folder.h"
#include "headrace/tools/runs/saturation_timeline.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"

namespace headrace::tools {

class RecipeRun {
 public:
  struct Result {
    Evaluation test;
    // Values that depend on data, training, evaluation; without preparation and loading, also to the devices'
    // memory.
    double seconds = 0;
  };

  // Prepares the run. Also warms up replicas with separate memory: a GPU loads a kernel and chooses an algorithm
  // at first use, and that is not training. REQUIRES: all arguments outlive this.
  RecipeRun(const Recipe& recipe, Model& model, const FitOptions& fit, const EvaluateOptions& test);

  // Returns, before run(), the earlier epochs of a continued run (FitOptions::resume).
  const History& history() const { return fit_->history(); }

  // Throws Error(kCancelled) if the options' `stop` ended training or test. REQUIRES: called once.
  Result run();

 private:
  void warm_up();
  void require_not_stopped() const;
  Evaluation evaluate();

  const Recipe& recipe_;
  Model& model_;
  const FitOptions& fit_options_;
  const EvaluateOptions& test_options_;
  std::function<void()> initialise_;  // empty if nothing depends on data
  std::optional<PreparedFit> fit_;
  std::optional<Evaluator> test_;  // created at once if it is warmed up, else after the training
};

// The results of a run of `headrace train`: its lines of JSON, its folder, its trace.

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

// The values of the options of these names; empty ones are not written.
struct TrainTargets {
  std::string json, run_dir, trace;
};

// Opens all outputs before the work. The lines of --json are also the history in the run's folder.
class TrainResults {
 public:
  // Tells people where the run goes if its folder holds one already.
  explicit TrainResults(const TrainTargets& targets);

  // Writes the net, the plan and other facts of the run's next training to the folder.
  void describe(const Recipe& recipe, const Model& model, const nlohmann::ordered_json& run);
  // Observes the training for the folder.
  void attach(FitOptions& fit);

  // Writes the lines of a continued run's earlier epochs, without values that are not part of the history.
  void write_earlier(const History& history);
  void write_epoch(const EpochReport& report);
  void write(const nlohmann::ordered_json& line);
  // Called after the last line, also of an interrupted run.
  void finish();
  // Writes how the run ended, see RunJournal::end(), and the remaining warnings. If this cannot be written, a
  // failed run keeps its own error.
  void end(const std::string& status, const std::string& reason, const std::vector<std::string>& warnings);

  // Returns the stream for text for people.
  std::FILE* text_output() const { return json_.text_output(); }
  // Returns null without --trace.
  std::shared_ptr<FileWriter> trace() const { return trace_; }

 private:
  JsonLines json_;
  std::shared_ptr<FileWriter> trace_;
  std::optional<RunFolder> folder_;
  std::optional<JsonLines> history_;
  std::optional<RunJournal> journal_;
};

// Returns how the run ended, without its options.
nlohmann::ordered_json final_line(const RecipeRun::Result& result, const Model& model);

}  // namespace headrace::tools
