// An evaluation as a self-contained page: the confusion matrix and the worst examples.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace headrace::tools {

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

// Returns HTML that is also strict XML; no scripts, no external resources. More than 100 classes have no matrix:
// only their most frequent confusions are listed, as for fewer classes, too.
std::string make_evaluation_page(const EvaluationPage& page);

}  // namespace headrace::tools
