// Predictions as a file for other programs: CSV, or NumPy's .npy and .npz.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/file_writer.h"
#include "headrace/train/evaluator.h"

namespace headrace::tools {

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
