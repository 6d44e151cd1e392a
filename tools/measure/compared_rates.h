// What `headrace bench input --baseline` measures in turn with the engine, and how far ahead the engine is.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headrace/tools/pipelines/baseline.h"

namespace headrace::tools {

inline constexpr int kPairs = 5;  // turns of each side; fewer where there is no time for all

// Its samples, and the engine's rate of each turn divided by its own.
struct ComparedRates {
  std::string key, name;  // in JSON and for people
  Baseline baseline;
  std::vector<double> rates = {}, ratios = {};

  // One turn, after one of the engine that gave `engine` images a second.
  void run(int threads, double seconds, double engine);
  // The ratio is the median of the pairs'; the baseline's keys stand alone, another's begin with its own.
  void add_to(nlohmann::ordered_json& line) const;
  void print(double engine, std::FILE* people) const;
};

// The bare work of a named pipeline, and where memory bounds it what memory alone allows.
std::vector<ComparedRates> compared_with(const std::string& pipeline, const PipelineOptions& options);

double median(std::vector<double> values);

}  // namespace headrace::tools
