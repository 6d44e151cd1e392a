#include "headrace/tools/output/stage_lines.h"

namespace headrace::tools {

nlohmann::ordered_json stage_line(const StageStats& stage, std::uint64_t elapsed_ns) {
  return {{"name", stage.name},
          {"stage_kind", to_string(stage.kind)},
          {"threads", stage.threads},
          {"items", stage.items},
          {"ns_per_item", stage.ns_per_item()},
          {"occupancy", stage.occupancy(elapsed_ns)},
          {"wait_p50_us", microseconds(stage.waits, 0.50)},
          {"wait_p99_us", microseconds(stage.waits, 0.99)}};
}

nlohmann::ordered_json verdict_line(const Verdict& verdict, const LoaderStats& stats) {
  nlohmann::ordered_json what_ifs = nlohmann::ordered_json::array();
  for (const WhatIf& what_if : verdict.what_ifs) {
    what_ifs.push_back({{"what", what_if.what},
                        {"images_per_second", what_if.images_per_second},
                        {"bottleneck", what_if.bottleneck},
                        {"instead_of", what_if.instead_of},
                        {"sentence", verdict.sentence(what_if)}});
  }
  const WaitHistogram& waits = stats.stages.back().waits;
  return {{"bottleneck", verdict.bottleneck},
          {"kind", verdict.kind},
          {"ceiling_images_per_second", verdict.ceiling_images_per_second},
          {"measured_images_per_second", verdict.measured_images_per_second},
          {"wait_p50_us", microseconds(waits, 0.50)},
          {"wait_p99_us", microseconds(waits, 0.99)},
          {"ready_share", stats.ready_share},
          {"sentence", verdict.sentence()},
          {"what_ifs", what_ifs}};
}

}  // namespace headrace::tools
