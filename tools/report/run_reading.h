// What a run left in its folder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headrace::tools {

// One training: a run with --runs has several.
struct TrainingLines {
  std::vector<nlohmann::json> epochs;  // objects, each with an "epoch"
  nlohmann::json final;                // null where it has not come to its end
};

struct RunReading {
  std::filesystem::path folder;
  nlohmann::json run, input;             // null where there are none
  std::vector<TrainingLines> trainings;  // one at least, perhaps empty
  std::vector<nlohmann::json> timeline;  // objects, of the last training
  std::string model, plan;
  bool going_on = false;           // a process still writes to it
  std::vector<std::string> notes;  // what is missing or damaged, for the reader of the page
};

// Reads what there is. DataError where a file cannot be read, and where not one line of a history that has some is
// one of a history.
RunReading read_run(const std::filesystem::path& folder);

// Null where the file is missing or holds no JSON object.
nlohmann::json read_object(const std::filesystem::path& file);

}  // namespace headrace::tools
