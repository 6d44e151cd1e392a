// What a run of `headrace train` leaves: its lines of JSON, its folder, its trace.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/file_writer.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/runs/recipe_run.h"
#include "headrace/tools/runs/run_folder.h"
#include "headrace/tools/runs/run_journal.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/model.h"

namespace headrace::tools {

// Of the options of these names; what is empty is not written.
struct TrainTargets {
  std::string json, run_dir, trace;
};

// Opens all of it before the work. The lines of --json are also the history in the run's folder.
class TrainResults {
 public:
  // Tells people where the run goes if its folder holds one already.
  explicit TrainResults(const TrainTargets& targets);

  // Of the next training of the run: the net, the plan and what else is known of the run, into the folder.
  void describe(const Recipe& recipe, const Model& model, const nlohmann::ordered_json& run);
  // Lets it be observed for the folder.
  void attach(FitOptions& fit);

  // Of a run that is continued: what its first part wrote of its epochs, but for what is no part of the history.
  void write_earlier(const History& history);
  void write_epoch(const EpochReport& report);
  void write(const nlohmann::ordered_json& line);
  // After the last line, also of a run that was interrupted.
  void finish();
  // How the run ended, as RunJournal::end() has it, and what was left unsaid. Where this cannot be written, a run
  // that failed keeps its own error.
  void end(const std::string& status, const std::string& reason, const std::vector<std::string>& warnings);

  // Where text for people goes.
  std::FILE* people() const { return json_.people(); }
  // Null without --trace.
  std::shared_ptr<FileWriter> trace() const { return trace_; }

 private:
  JsonLines json_;
  std::shared_ptr<FileWriter> trace_;
  std::optional<RunFolder> folder_;
  std::optional<JsonLines> history_;
  std::optional<RunJournal> journal_;
};

// How the run ended, without what its options say.
nlohmann::ordered_json final_line(const RecipeRun::Result& result, const Model& model);

}  // namespace headrace::tools
