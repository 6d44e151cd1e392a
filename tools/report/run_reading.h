// The files that a run left in its folder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headrace::tools {

// One training: a run with --runs has several.
struct TrainingLines {
  std::vector<nlohmann::json> epochs;  // objects, each with an "epoch"
  nlohmann::json final;                // null if it has not ended
};

struct RunReading {
  std::filesystem::path folder;
  nlohmann::json run, input;             // null if there are none
  std::vector<TrainingLines> trainings;  // at least one, possibly empty
  std::vector<nlohmann::json> timeline;  // objects, of the last training
  std::string model, plan;
  bool going_on = false;           // a process is still writing to it
  std::vector<std::string> notes;  // what is missing or damaged, for the reader of the page
};

// Reads the files that exist. Throws DataError if a file cannot be read, or if no line of a non-empty history is
// valid.
RunReading read_run(const std::filesystem::path& folder);

// Returns null if the file is missing or does not hold a JSON object.
nlohmann::json read_object(const std::filesystem::path& file);

}  // namespace headrace::tools
