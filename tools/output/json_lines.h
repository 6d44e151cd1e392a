// Writes a command's results for other programs: JSON lines, predictions, a replica's share of a batch.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/stats.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/metrics.h"

namespace headrace::tools {

// Machine-readable results, one JSON object per line, and metrics and statistics as members of them.

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
  std::FILE* text_output() const noexcept { return on_stdout() ? stderr : stdout; }

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

// The number of examples of a global batch that a replica gets.

struct LocalBatch {
  std::int64_t global_batch = 0;  // of a whole batch; at most those of the data
  int world_replicas = 1;         // replicas that share it
  std::int64_t min = 0, max = 0;  // examples of one of them

  // Returns "batch: 512 examples, 64 on each of 8 replicas".
  std::string describe() const;
};

LocalBatch local_batch(const Dataset& dataset, std::int64_t global, int world_replicas);

// Predictions as a file for other programs: CSV, or NumPy's .npy and .npz.

// Predictions with what is known of their examples.
struct NamedPredictions {
  Predictions results;
  std::vector<std::string> names;                   // of the examples: files, members of archives
  std::vector<std::optional<std::int64_t>> labels;  // numbers of classes
  std::vector<std::string> classes = {};            // by number; may be empty

  std::size_t width() const;  // values of an example
  // See predicted_class().
  std::optional<std::size_t> prediction(std::size_t example) const;
};

enum class PredictionFormat {
  kJsonLines,
  kCsv,  // name, record, label, prediction, class, and a column for each value
  kNpy,  // the values alone
  kNpz,  // values, records, names; predictions, labels (-1: unknown) and classes if there are any; further outputs
};

// By the file's extension; kJsonLines for all but .csv, .npy and .npz.
PredictionFormat prediction_format(const std::filesystem::path& file);

// Opened before the work: it may not be writable. Appears whole or not at all.
class PredictionFile {
 public:
  explicit PredictionFile(const std::filesystem::path& file);

  void write(const NamedPredictions& predictions);

 private:
  PredictionFormat format_;
  FileWriter file_;
};

}  // namespace headrace::tools
