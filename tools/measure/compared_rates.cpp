#include "headrace/tools/measure/compared_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/text.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {

double median(std::vector<double> values) { return quantile(values, 0.5); }

void ComparedRates::run(int threads, double seconds, double engine) {
  rates.push_back(baseline(threads, seconds));
  ratios.push_back(engine / rates.back());
}

void ComparedRates::add_to(nlohmann::ordered_json& line) const {
  const std::string prefix = key == "baseline" ? "" : key + "_";
  line["samples"][key] = rates;
  line[prefix + "ratios"] = ratios;
  line[key] = name;
  line[key + "_images_per_second"] = median(rates);
  line[prefix + "ratio"] = median(ratios);
  line[prefix + "ratio_min"] = *std::ranges::min_element(ratios);
  line[prefix + "ratio_max"] = *std::ranges::max_element(ratios);
}

void ComparedRates::print(double engine, std::FILE* people) const {
  tools::print(people, "{}: {:.0f} images/s; the engine's {:.0f} are {:.2f} of it ({:.2f} to {:.2f}, {})\n", name,
               median(rates), engine, median(ratios), *std::ranges::min_element(ratios),
               *std::ranges::max_element(ratios), count_of(ratios.size(), "pair"));
}

std::vector<ComparedRates> compared_with(const std::string& pipeline, const PipelineOptions& options) {
  std::vector<ComparedRates> all;
  all.push_back(
      {.key = "baseline", .name = baseline_name(pipeline), .baseline = make_baseline(pipeline, options)});
  if (Baseline bound = make_memory_bound(pipeline)) {
    all.push_back({.key = "memory", .name = "memory alone", .baseline = std::move(bound)});
  }
  return all;
}

}  // namespace headrace::tools
