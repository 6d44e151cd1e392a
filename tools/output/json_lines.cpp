#include "headrace/tools/output/json_lines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/text.h"

namespace headrace::tools {

JsonLines::JsonLines(const std::string& target)
    : on_stdout_(target == "-"), on_terminal_(on_stdout_ && ::isatty(STDOUT_FILENO) == 1) {
  if (!target.empty() && !on_stdout_) file_.emplace(target, Appears::kGrowing);
}

void JsonLines::write(const nlohmann::ordered_json& object) {
  if (!on_stdout_ && !file_) return;
  const std::string line = object.dump(-1, ' ', on_terminal_, nlohmann::json::error_handler_t::replace) + "\n";
  if (file_) {
    file_->append(std::as_bytes(std::span(line)));
    return file_->flush();
  }
  const BlockingCall waits;  // where standard output is a pipe that nobody reads
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::kIo, std::string("cannot write to standard output: ") + std::strerror(errno),
                "is the disk full?");
  }
}

void JsonLines::finish() {
  if (file_) file_->commit();
}

void add_metrics(nlohmann::ordered_json& line, const std::string& prefix,
                 const std::vector<MetricValue>& metrics) {
  for (const MetricValue& metric : metrics) {
    if (metric.is_number()) {
      line[prefix + metric.name] = metric.number();
    } else {
      line[prefix + metric.name] = metric.values;
    }
  }
}

std::string metric_text(const std::vector<MetricValue>& metrics) {
  std::string text;
  for (const MetricValue& metric : metrics) {
    if (metric.is_number()) text += fmt::format(" - {}: {:.4f}", metric.name, metric.number());
  }
  return text;
}

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

std::string LocalBatch::describe() const {
  std::string text = "batch: " + count_of(static_cast<std::uint64_t>(global_batch), "example");
  if (world_replicas == 1) return text;
  const std::string each =
      min == max ? with_commas(static_cast<std::uint64_t>(max)) : fmt::format("{} or {}", min, max);
  return text + fmt::format(", {} on each of {} replicas", each, world_replicas);
}

LocalBatch local_batch(const Dataset& dataset, std::int64_t global, int world_replicas) {
  const std::int64_t whole =
      dataset.streamed() ? global
                         : static_cast<std::int64_t>(std::min(static_cast<std::uint64_t>(global), dataset.size()));
  return {.global_batch = whole,
          .world_replicas = world_replicas,
          .min = whole / world_replicas,
          .max = whole / world_replicas + (whole % world_replicas != 0 ? 1 : 0)};
}

}  // namespace headrace::tools
