// The rates that `headrace bench input --baseline` measures in turn with the engine, and the engine's lead.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "headrace/tools/pipelines/baseline.h"

namespace headrace::tools {

inline constexpr int kPairs = 5;  // turns of each side; fewer if there is no time for all

// The samples of one comparison, and each turn's ratio of the engine's rate to its own.
struct ComparedRates {
  std::string key, name;  // in JSON and for people
  Baseline baseline;
  std::vector<double> rates = {}, ratios = {};

  // Runs one turn, after an engine turn with a rate of `engine` images per second.
  void run(int threads, double seconds, double engine);
  // Adds the rates and the median ratio of the pairs; keys have no prefix for the baseline, else `key`.
  void add_to(nlohmann::ordered_json& line) const;
  void print(double engine, std::FILE* people) const;
};

// Returns the bare work of a named pipeline and, if memory bounds it, the limit of memory alone.
std::vector<ComparedRates> compared_with(const std::string& pipeline, const PipelineOptions& options);

double median(std::vector<double> values);

// Returns the value below which `share` of the others, in [0, 1], lie; .5 is the median. Reorders the values.
// REQUIRES: there is at least one value.
inline double quantile(std::vector<double>& values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace headrace::tools
