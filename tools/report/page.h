// The pages of the command: HTML files that need nothing else. A page is its data, as JSON, within one template
// (page.html) whose scripts draw them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headrace/tools/report/run_reading.h"

namespace headrace::tools {

// Begins every page, which distinguishes it from a user's file.
inline constexpr const char* kReportBegin = "<!DOCTYPE html>\n<!-- made by headrace report -->\n";

// Returns the page of data that run_data() or evaluation_data() returned.
std::string make_page(const nlohmann::json& data);

// Returns a run's data. `others`: a sentence on the other runs of the folder, or empty.
nlohmann::json run_data(const RunReading& run, const std::string& others = {});

struct PageExample {
  std::string name;
  std::int64_t label = 0, prediction = 0;
  double loss = 0;
};

struct EvaluationPage {
  std::string title;                                              // of what, on what
  std::vector<std::pair<std::string, std::string>> figures = {};  // "accuracy", "0.9100"
  std::int64_t classes = 0;
  std::vector<std::string> names = {};        // of the classes; may be empty
  std::vector<std::uint64_t> confusion = {};  // examples by label, then by prediction
  std::vector<PageExample> worst = {};        // the highest loss first
};

// Returns an evaluation's data: the confusion matrix of at most 100 classes, the most frequent confusions and the
// worst examples.
nlohmann::json evaluation_data(const EvaluationPage& page);

}  // namespace headrace::tools
