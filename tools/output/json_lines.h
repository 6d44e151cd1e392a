// Machine-readable results, one JSON object per line, and metrics and statistics as members of them.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/stats.h"
#include "headrace/train/metrics.h"

namespace headrace::tools {

// Writes a new file line by line. finish() replaces an existing file: a run that fails leaves it unchanged.
class JsonLines {
 public:
  // `target`: a path, "-" for standard output, or empty to drop the lines.
  explicit JsonLines(const std::string& target);

  // Writes and flushes a line at once, keys in the order given. A terminal gets ASCII, so that names cannot
  // control it.
  void write(const nlohmann::ordered_json& object);
  // Called after the last line.
  void finish();

  // Returns whether the lines go to standard output: text for people then goes to standard error.
  bool on_stdout() const noexcept { return on_stdout_; }
  // Returns the stream for text for people.
  std::FILE* people() const noexcept { return on_stdout() ? stderr : stdout; }

 private:
  bool on_stdout_ = false;
  bool on_terminal_ = false;
  std::optional<FileWriter> file_;
};

// Adds one number per metric; a table is a list of numbers, row by row.
void add_metrics(nlohmann::ordered_json& line, const std::string& prefix, const std::vector<MetricValue>& metrics);

// Returns " - accuracy: 0.9230 - top_5: 0.9961", without tables.
std::string metric_text(const std::vector<MetricValue>& metrics);

inline double microseconds(const WaitHistogram& waits, double share) { return waits.quantile_ns(share) * 1e-3; }

// Returns "name", "ns_per_item", "occupancy" and the other statistics of a stage over that time.
nlohmann::ordered_json stage_line(const StageStats& stage, std::uint64_t elapsed_ns);

// Returns "bottleneck", "kind", "ceiling_images_per_second", the sentences; `stats` are those of the verdict.
nlohmann::ordered_json verdict_line(const Verdict& verdict, const LoaderStats& stats);

}  // namespace headrace::tools
